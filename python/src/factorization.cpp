#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "batches.hpp"
#include "bindings.hpp"

namespace quoin::python {
namespace {

/// Factors A = QR in memory that the library allocates.
template <class T, class D>
QR<T, D> factor_matrix(Context<D>& ctx, const StridedMatrix<T, D>& A, const Options& options) {
    if (A.is_readable()) return qr<T, D>(ctx, A.input(), options);
    return qr<T, D>(ctx, copy_of<T>(ctx, A), plan_qr<T>(ctx, A.rows, A.cols, options));
}

/// Returns Q and R in the modes 'reduced' and 'complete', R in 'r', V_Rᵀ and tau in 'raw'.
template <class T, class D>
nb::object factor_array(const Array<T, D>& array, char mode, const nb::object& method, const Where<D>& where,
                        bool check_finite, bool positive) {
    const bool raw = mode == 'h';
    Options options = options_of(method, check_finite);
    options.positive_diagonal = positive;
    const bool square = mode == 'c' && (array.ndim() > 2 || array.shape(0) > array.shape(1));
    options.q = mode == 'r' ? QForm::None : raw ? QForm::Reflectors : square ? QForm::Any : QForm::Explicit;
    // the library reads one matrix of any strides on a GPU as a batch
    if (array.ndim() > 2 || (!std::is_same_v<D, Host> && !matrix_of<T, D>(array).is_readable())) {
        if (mode != 'c') return qr_stack<T, D>(array, options, where);
        const Factorizations<T, D> f(array, options, where);
        return nb::make_tuple(f.q(true, where), f.r(true, where));
    }
    const StridedMatrix<T, D> A = matrix_of<T, D>(array);
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    const bool complete = mode == 'c' && m > n;

    std::optional<BatchResult<T, D>> first;
    if (mode != 'r') {
        const Index cols = raw ? n : complete ? m : k;
        first.emplace(where, std::vector<std::size_t>(), 1, m, cols, m, raw ? As::Transpose : As::Matrix);
    }
    BatchResult<T, D> second(where, {}, 1, raw || !complete ? k : m, raw ? 1 : n, k, raw ? As::Vector : As::Matrix);
    run_released(Home<D>(where), where_for(where, m, n), flops_of_qr(m, n), [&](Context<D>& ctx) {
        if (complete) {
            const QR<T, D> f = factor_matrix<T, D>(ctx, A, options);
            second.put(ctx, f.r(ctx));
            return first->put(ctx, f.q_block(ctx, {0, m}, {0, m}));
        }
        const MatrixView<T, D> Q = first ? first->matrix(m) : MatrixView<T, D>();
        const Readable<T, D> input(ctx, A, Q);
        if (raw) return qr_lapack<T, D>(ctx, input.view, Q, second.matrix(k), options);
        qr<T, D>(ctx, input.view, Q, second.matrix(k), options);
    });
    if (mode == 'r') return second.take();
    return nb::make_tuple(first->take(), second.take());
}

template <class T, class D>
Held<QR<T, D>, D> factor(const Array<T, D>& array, const nb::object& method, const nb::object& q, const Where<D>& where,
                         bool check_finite, bool verify, const nb::object& pivoting, bool positive,
                         const nb::object& callback) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(array);
    Options options = options_of(method, q, check_finite, verify);
    options.pivoting = pivoting_of(pivoting);
    options.positive_diagonal = positive;
    return held<D>(
        where_for(where, A.rows, A.cols), flops_of_qr(A.rows, A.cols),
        [&](Context<D>& ctx) { return factor_matrix<T, D>(ctx, A, options); },
        progress_of<D>(callback, where,
                       [&](Context<D>& ctx) { return plan_qr<T>(ctx, A.rows, A.cols, options).flops; }));
}

/// Calls `from_lapack` for V_Rᵀ (n×m) and tau (k×1).
template <class T, class D>
Held<QR<T, D>, D> from_raw(const Array<T, D>& h, const Array<T, D>& tau, const Where<D>& where) {
    const StridedMatrix<T, D> V_R = matrix_of<T, D>(h).transposed(), taus = matrix_of<T, D>(tau);
    return held<D>(where_for(where, V_R.rows, V_R.cols), flops_of_qr(V_R.rows, V_R.cols), [&](Context<D>& ctx) {
        return from_lapack<T, D>(ctx, {copy_of<T>(ctx, V_R), copy_of<T>(ctx, taus)});
    });
}

}  // namespace

void bind_factorization(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string& suffix) {
        module.def("qr", &factor_array<T, D>, "a"_a.noconvert(), "mode"_a, "method"_a.none(), "where"_a,
                   "check_finite"_a, "positive"_a = false);
        module.def("factor", &factor<T, D>, "a"_a.noconvert(), "method"_a.none(), "q"_a.none(), "where"_a,
                   "check_finite"_a, "verify"_a, "pivoting"_a = nb::none(), "positive"_a = false,
                   "callback"_a = nb::none());
        module.def("from_raw", &from_raw<T, D>, "h"_a.noconvert(), "tau"_a.noconvert(), "where"_a);

        using F = Held<QR<T, D>, D>;
        using Make = Matrix<T, D> (QR<T, D>::*)(Context<D>&) const;
        nb::class_<F> kept(module, ("Factorization" + suffix).c_str());
        const auto def_array = [&](const char* name, Make make, double (*flops)(Index m, Index n), As as = As::Matrix) {
            kept.def(name, [=](const F& f, const Where<D>& where) {
                return array_of(
                    f.home, where, flops(f.object.rows(), f.object.cols()),
                    [&](Context<D>& ctx) { return (f.object.*make)(ctx); }, as);
            });
        };
        def_array("r", &QR<T, D>::r, [](Index, Index) { return 0.0; });
        def_array("v", &QR<T, D>::v, flops_of_copy);
        def_array(
            "tau", &QR<T, D>::tau, [](Index, Index) { return 0.0; }, As::Vector);
        def_array("t", &QR<T, D>::t, flops_of_qr);
        def_array("q", &QR<T, D>::form_q, flops_of_qr);
        kept.def_prop_ro("shape", [](const F& f) { return nb::make_tuple(f.object.rows(), f.object.cols()); })
            .def_prop_ro("dtype", [](const F&) { return numpy_name<T>; })
            .def_prop_ro("plan", [](const F& f) { return to_dict<D>(f.object.plan()); })
            .def_prop_ro("report", [](const F& f) { return to_tuple(f.object.report()); })
            .def_prop_ro("permutation",
                         [](const F& f) {
                             const auto order = f.object.permutation();
                             return std::vector<Index>(order.begin(), order.end());
                         })
            .def("q_block",
                 [](const F& f, Index i0, Index i1, Index j0, Index j1, const Where<D>& where) {
                     const double width = std::min(i1 - i0, j1 - j0);
                     const double flops = 4.0 * f.object.rows() * f.object.cols() * width;
                     return array_of(f.home, where, flops, [&](Context<D>& ctx) {
                         return f.object.q_block(ctx, {i0, i1}, {j0, j1});
                     });
                 })
            .def("apply",
                 [](const F& f, const Array<T, D>& c, bool left, bool transpose, const Where<D>& where) {
                     const StridedMatrix<T, D> C = matrix_of<T, D>(c);
                     const double flops = 4.0 * f.object.rows() * f.object.cols() * (left ? C.cols : C.rows);
                     return array_of(f.home, where, flops, [&](Context<D>& ctx) {
                         Matrix<T, D> QC = copy_of<T>(ctx, C);
                         f.object.apply_q(ctx, left ? Side::Left : Side::Right, transpose ? Op::Transpose : Op::None,
                                          QC.view());
                         return QC;
                     });
                 })
            .def("lstsq", [](const F& f, const Array<T, D>& b, const Solver& solver, const Where<D>& where) {
                const StridedMatrix<T, D> B = matrix_of<T, D>(b);
                const double flops = 4.0 * f.object.rows() * f.object.cols() * B.cols;
                auto solution = result_of(f.home, where, flops, [&](Context<D>& ctx) {
                    return least_squares<T, D>(ctx, f.object, ColumnMajor<T, D>(ctx, B).view, solver_of(solver));
                });
                return to_tuple(f.home, where, std::move(solution));
            });
    });
}

}  // namespace quoin::python
