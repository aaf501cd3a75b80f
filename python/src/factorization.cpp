#include <optional>

#include "batches.hpp"
#include "bindings.hpp"

namespace quoin::python {
namespace {

#ifdef QUOIN_HAVE_CUDA
/// Factors A = QR, in `memory` if it is given and A is copied.
template <class T>
QR<T, Cuda> factor_matrix(Context<Cuda>& ctx, const StridedMatrix<T, Cuda>& A, const Options& options,
                          Matrix<T, Cuda>&& memory = {}) {
    if (options.q == QForm::None ? A.is_readable() : A.column_major() && !memory.data())
        return qr<T, Cuda>(ctx, A.input(), options);
    if (!memory.data()) memory = Matrix<T, Cuda>::aligned(ctx, A.rows, A.cols);
    load<T>(ctx, A, memory.view());
    return qr<T, Cuda>(ctx, std::move(memory), plan_qr<T>(ctx, A.rows, A.cols, options));
}
#endif

/// Writes Q and R, R alone, or V_R and tau directly to the caller's memory.
template <class T, class D>
void factor_in_one_launch(Context<D>& ctx, const StridedMatrix<T, D>& A, const Options& options, BatchView<T, D> first,
                          BatchView<T, D> second) {
    const BatchView<const T, D> one(A.data, A.rows, A.cols, A.row_stride, A.col_stride, 0, 1);
    try {
        if (options.q == QForm::Reflectors) return qr_lapack<T, D>(ctx, one, first, second, options);
        qr<T, D>(ctx, one, first, second, options);
    } catch (const NonFiniteEntry& e) {
        throw NonFiniteEntry(e.row, e.col);  // names a matrix, not a member of a batch
    }
}

/// Returns Q and R in the modes 'reduced' and 'complete', R in 'r', V_Rᵀ and tau in 'raw'.
template <class T, class D>
nb::object factor_array(const Array<T, D>& array, char mode, const nb::object& method, const Where<D>& where,
                        bool check_finite) {
    const bool raw = mode == 'h';
    Options options = options_of(method, check_finite);
    const bool square = mode == 'c' && (array.ndim() > 2 || array.shape(0) > array.shape(1));
    options.q = mode == 'r' ? QForm::None : raw ? QForm::Reflectors : square ? QForm::Any : QForm::Explicit;
    if (array.ndim() > 2) {
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
        if constexpr (!std::is_same_v<D, Host>) {
            if (!complete && plan_qr<T>(ctx, m, n, options).one_launch) {
                return factor_in_one_launch<T, D>(ctx, A, options, first ? first->all(m) : BatchView<T, D>(),
                                                  second.all(k));
            }
        }
        QR<T, D> f = factor_matrix<T>(ctx, A, options, first ? first->work(m, n) : Matrix<T, D>());
        if (raw) {
            LapackQR<T, D> lapack = to_lapack<T, D>(ctx, std::move(f));
            first->put(ctx, std::move(lapack.V_R));
            second.put(ctx, std::move(lapack.tau));
            return;
        }
        if (complete) {
            second.put(ctx, f.r(ctx));
            return first->put(ctx, f.q_block(ctx, {0, m}, {0, m}));
        }
        ThinQR<T, D> thin = std::move(f).take_thin(ctx);
        second.put(ctx, std::move(thin.R));
        if (mode != 'r') first->put(ctx, std::move(thin.Q));
    });
    if (mode == 'r') return second.take();
    return nb::make_tuple(first->take(), second.take());
}

template <class T, class D>
Held<QR<T, D>, D> factor(const Array<T, D>& array, const nb::object& method, const nb::object& q, const Where<D>& where,
                         bool check_finite, bool verify) {
    const StridedMatrix<T, D> A = matrix_of<T, D>(array);
    const Options options = options_of(method, q, check_finite, verify);
    const Home<D> home(where);
    return {home, result_of(home, where_for(where, A.rows, A.cols), flops_of_qr(A.rows, A.cols),
                            [&](Context<D>& ctx) { return factor_matrix<T>(ctx, A, options); })};
}

/// Calls `from_lapack` for V_Rᵀ (n×m) and tau (k×1).
template <class T, class D>
Held<QR<T, D>, D> from_raw(const Array<T, D>& h, const Array<T, D>& tau, const Where<D>& where) {
    const StridedMatrix<T, D> V_R = matrix_of<T, D>(h).transposed(), taus = matrix_of<T, D>(tau);
    const Home<D> home(where);
    const double flops = flops_of_qr(V_R.rows, V_R.cols);
    return {home, result_of(home, where_for(where, V_R.rows, V_R.cols), flops, [&](Context<D>& ctx) {
                return from_lapack<T, D>(ctx, {copy_of<T>(ctx, V_R), copy_of<T>(ctx, taus)});
            })};
}

}  // namespace

void bind_factorization(nb::module_& module) {
    using namespace nb::literals;
    for_each_type(module, []<class T, class D>(T, D, nb::module_& module, const std::string& suffix) {
        module.def("qr", &factor_array<T, D>, "a"_a.noconvert(), "mode"_a, "method"_a.none(), "where"_a,
                   "check_finite"_a);
        module.def("factor", &factor<T, D>, "a"_a.noconvert(), "method"_a.none(), "q"_a.none(), "where"_a,
                   "check_finite"_a, "verify"_a);
        module.def("from_raw", &from_raw<T, D>, "h"_a.noconvert(), "tau"_a.noconvert(), "where"_a);

        using F = Held<QR<T, D>, D>;
        nb::class_<F>(module, ("Factorization" + suffix).c_str())
            .def_prop_ro("shape", [](const F& f) { return nb::make_tuple(f.object.rows(), f.object.cols()); })
            .def_prop_ro("plan", [](const F& f) { return to_dict<D>(f.object.plan()); })
            .def_prop_ro("report", [](const F& f) { return to_dict(f.object.report()); })
            .def("r",
                 [](const F& f, const Where<D>& where) {
                     return array_of(f.home, where, 0, [&](Context<D>& ctx) { return f.object.r(ctx); });
                 })
            .def("v",
                 [](const F& f, const Where<D>& where) {
                     const double flops = flops_of_copy(f.object.rows(), f.object.cols());
                     return array_of(f.home, where, flops, [&](Context<D>& ctx) { return f.object.v(ctx); });
                 })
            .def("tau",
                 [](const F& f, const Where<D>& where) {
                     return to_vector(f.home, where,
                                      result_of(f.home, where, 0, [&](Context<D>& ctx) { return f.object.tau(ctx); }));
                 })
            .def("t",
                 [](const F& f, const Where<D>& where) {
                     return array_of(f.home, where, flops_of_qr(f.object.rows(), f.object.cols()),
                                     [&](Context<D>& ctx) { return f.object.t(ctx); });
                 })
            .def("q",
                 [](const F& f, const Where<D>& where) {
                     return array_of(f.home, where, flops_of_qr(f.object.rows(), f.object.cols()),
                                     [&](Context<D>& ctx) { return f.object.form_q(ctx); });
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
            .def("lstsq", [](const F& f, const Array<T, D>& b, double rcond, const Where<D>& where) {
                const StridedMatrix<T, D> B = matrix_of<T, D>(b);
                const double flops = 4.0 * f.object.rows() * f.object.cols() * B.cols;
                auto solution = result_of(f.home, where, flops, [&](Context<D>& ctx) {
                    return least_squares<T, D>(ctx, f.object, ColumnMajor<T, D>(ctx, B).view, rcond);
                });
                return to_tuple(f.home, where, std::move(solution));
            });
    });
}

}  // namespace quoin::python
