#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "options.hpp"
#include "results.hpp"

namespace quoin::python {
namespace {

using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Returns the statistics by name, and the summary of each right-hand side.
nb::dict to_dict(Regression&& fit, const std::vector<std::string>& names) {
    nb::list summaries;
    for (Index c = 0; c < fit.coefficients.cols(); ++c) summaries.append(summary(fit, names, c));
    nb::dict d;
    d["observations"] = fit.observations;
    d["rank"] = fit.rank;
    d["degrees_of_freedom"] = fit.degrees_of_freedom;
    d["condition"] = fit.condition;
    d["dependent"] = fit.dependent;
    const std::pair<const char*, Matrix<double>&> matrices[] = {
        {"coefficients", fit.coefficients}, {"standard_errors", fit.standard_errors}, {"t_values", fit.t_values},
        {"p_values", fit.p_values},         {"error_bounds", fit.error_bounds},       {"R", fit.R}};
    for (const auto& [name, matrix] : matrices) d[name] = to_numpy(std::move(matrix));
    const std::pair<const char*, const std::vector<double>&> vectors[] = {
        {"residual_norms", fit.residual_norms},
        {"residual_standard_errors", fit.residual_standard_errors},
        {"r_squared", fit.r_squared},
        {"adjusted_r_squared", fit.adjusted_r_squared},
        {"f_values", fit.f_values},
        {"f_p_values", fit.f_p_values}};
    for (const auto& [name, values] : vectors) d[name] = nb::cast(values);
    d["summaries"] = summaries;
    return d;
}

}  // namespace

void bind_lstsq(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string&) {
        module.def(
            "lstsq",
            [](const Array<T, D>& a, const Array<T, D>& b, const Solver& solver, const nb::object& method,
               const Where<D>& where, bool check_finite, const nb::object& callback) {
                const StridedMatrix<T, D> A = matrix_of<T, D>(a), B = matrix_of<T, D>(b);
                const Options options = options_of(method, check_finite);
                const Home<D> home(where);
                const double flops = flops_of_qr(A.rows, A.cols);
                auto solution = result_of(
                    home, where_for(where, A.rows, A.cols), flops,
                    [&](Context<D>& ctx) {
                        const Readable<T, D> A_(ctx, A);
                        const ColumnMajor<T, D> B_(ctx, B);
                        return least_squares<T, D>(ctx, A_.view, B_.view, solver_of(solver), options);
                    },
                    progress_of<D>(callback, where,
                                   [&](Context<D>& ctx) { return plan_qr<T>(ctx, A.rows, A.cols, options).flops; }));
                return to_tuple(home, where, std::move(solution), b.ndim() == 1 ? As::Vector : As::Matrix);
            },
            "a"_a.noconvert(), "b"_a.noconvert(), "solver"_a, "method"_a.none(), "where"_a, "check_finite"_a,
            "callback"_a = nb::none());
        module.def(
            "constrained_lstsq",
            [](const Array<T, D>& a, const Array<T, D>& c, const Array<T, D>& b, const Array<T, D>& d,
               const Where<D>& where) {
                const StridedMatrix<T, D> A = matrix_of<T, D>(a), C = matrix_of<T, D>(c), B = matrix_of<T, D>(b),
                                          V = matrix_of<T, D>(d);
                const Home<D> home(where);
                auto solution = result_of(
                    home, where_for(where, A.rows, A.cols), flops_of_qr(A.rows, A.cols), [&](Context<D>& ctx) {
                        const Readable<T, D> A_(ctx, A), B_(ctx, B);
                        const ColumnMajor<T, D> C_(ctx, C), V_(ctx, V);
                        return constrained_least_squares<T, D>(ctx, A_.view, C_.view, B_.view, V_.view);
                    });
                return to_tuple(home, where, std::move(solution));
            },
            "a"_a.noconvert(), "c"_a.noconvert(), "b"_a.noconvert(), "d"_a.noconvert(), "where"_a);
        module.def(
            "regression",
            [](const Array<T, D>& a, const Array<T, D>& b, bool intercept, double ridge, const Weights& weights,
               const std::vector<std::string>& names, bool with_leverages, const Where<D>& where) {
                const StridedMatrix<T, D> A = matrix_of<T, D>(a), B = matrix_of<T, D>(b);
                const std::span<const double> w(weights.data(), weights.size());
                Matrix<double> h;
                Regression fit =
                    result_of(Home<D>(where), where_for(where, A.rows, A.cols), flops_of_qr(A.rows, A.cols),
                              [&](Context<D>& ctx) {
                                  const Readable<T, D> A_(ctx, A);
                                  const ColumnMajor<T, D> B_(ctx, B);
                                  Regression found = regression<T, D>(
                                      ctx, A_.view, B_.view, {.intercept = intercept, .ridge = ridge, .weights = w});
                                  if (with_leverages) {
                                      const std::vector<double> values = leverages<T, D>(ctx, found, A_.view, w);
                                      h = Matrix<double>(A.rows, 1);
                                      std::copy(values.begin(), values.end(), h.data());
                                  }
                                  return found;
                              });
                nb::dict d = to_dict(std::move(fit), names);
                d["leverages"] = with_leverages ? to_numpy(std::move(h), As::Vector) : nb::object(nb::none());
                return d;
            },
            "a"_a.noconvert(), "b"_a.noconvert(), "intercept"_a, "ridge"_a, "weights"_a, "names"_a, "leverages"_a,
            "where"_a);
    });
}

}  // namespace quoin::python
