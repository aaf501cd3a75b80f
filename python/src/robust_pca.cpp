#include "quoin/apps/robust_pca.hpp"

#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "devices.hpp"
#include "options.hpp"

namespace quoin::python {
namespace {

/// Returns L, S, Y, the last step, λ and the reason for the end. Calls `on_step`, unless it is None, with the fields of
/// each step. An exception from it or from a signal handler ends the pursuit.
template <class T, class D>
nb::tuple pursue(const Array<T, D>& m, const nb::object& pursuit, const nb::object& route, double lambda, double mu,
                 double noise, double rho, double tolerance, Index max_iterations, Index max_rank,
                 const std::optional<Array<std::uint8_t, D>>& observed, const std::optional<Array<T, D>>& L,
                 const std::optional<Array<T, D>>& Y, const nb::object& on_step, const Where<D>& where) {
    const StridedMatrix<T, D> M = matrix_of<T, D>(m);
    // Mᵀ = Lᵀ + Sᵀ is the same problem; Mᵀ is used if M is not column-major
    const bool by_rows = !M.column_major();
    const auto oriented = [&]<class U>(const std::optional<Array<U, D>>& array) {
        if (!array) return StridedMatrix<U, D>{};
        const StridedMatrix<U, D> A = matrix_of<U, D>(*array);
        return by_rows ? A.transposed() : A;
    };
    const auto to_tuple = [](const RobustPcaStep& step) {
        return nb::make_tuple(step.iteration, step.residual, step.dual_residual, step.objective, step.rank,
                              step.nonzeros, step.mu, step.seconds);
    };
    const Home<D> home(where);
    RobustPcaOptions<T, D> options;
    constexpr Pursuit pursuits[] = {Pursuit::InexactAlm, Pursuit::AlternatingDirections, Pursuit::Stable};
    constexpr ThresholdRoute routes[] = {ThresholdRoute::Auto, ThresholdRoute::Qr, ThresholdRoute::Gram};
    options.pursuit = parse_name<Pursuit>("pursuit", pursuits, pursuit);
    options.route = parse_name<ThresholdRoute>("route", routes, route);
    options.lambda = lambda;
    options.mu = mu;
    options.noise = noise;
    options.rho = rho;
    options.tolerance = tolerance;
    options.max_iterations = max_iterations;
    options.max_rank = max_rank;
    options.on_step = [&](const RobustPcaStep& step) {
        return with_gil([&] {
            const CallersCode<D> theirs(home);
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            return on_step.is_none() || nb::cast<bool>(call_python(on_step, to_tuple(step)));
        });
    };
    RobustPca<T, D> f;
    try {
        f = result_of(home, where_for(where, M.rows, M.cols), 0, [&](Context<D>& ctx) {
            const ColumnMajor<std::uint8_t, D> known(ctx, oriented(observed));
            const ColumnMajor<T, D> first_L(ctx, oriented(L)), first_Y(ctx, oriented(Y));
            options.observed = known.view;
            options.L = first_L.view;
            options.Y = first_Y.view;
            return robust_pca<T, D>(ctx, ColumnMajor<T, D>(ctx, by_rows ? M.transposed() : M).view, options);
        });
    } catch (const NonFiniteEntry&) {
        // found in Mᵀ, it is the first entry of M by rows; a call on M, which checks its entries before all else, names
        // the first by columns
        if (by_rows) {
            run_released(home, where_for(where, M.rows, M.cols), 0,
                         [&](Context<D>& ctx) { robust_pca<T, D>(ctx, ColumnMajor<T, D>(ctx, M).view); });
        }
        throw;
    }
    const auto out = [&](Matrix<T, D>& A) {
        return to_array(home, where, std::move(A), by_rows ? As::Transpose : As::Matrix);
    };
    return nb::make_tuple(out(f.L), out(f.S), out(f.Y), to_tuple(f.last), f.lambda, to_string(f.end),
                          to_string(f.route));
}

}  // namespace

void bind_robust_pca(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string&) {
        module.def("robust_pca", &pursue<T, D>, "m"_a.noconvert(), "pursuit"_a.none(), "route"_a.none(), "lam"_a,
                   "mu"_a, "noise"_a, "rho"_a, "tolerance"_a, "max_iterations"_a, "max_rank"_a, "observed"_a.none(),
                   "L"_a.none(), "Y"_a.none(), "on_step"_a.none(), "where"_a);
    });
}

}  // namespace quoin::python
