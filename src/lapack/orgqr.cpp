// ?orgqr and ?ormqr: the columns of Q, and its products, from V and tau. ?orglq and ?ormlq: the rows of Q, and its
// products, from Vᵀ and tau.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <Of of, class T, class Int, class Next>
void orgqr(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, const Int* k_, T* A, const Int* lda,
           const T* tau, T* work, const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, k = *k_;
    constexpr bool lq = of == Of::LQ;
    const bool query = *lwork == -1;
    const Index length = lq ? n : m, vectors = lq ? m : n;
    *info = m < 0                                            ? -1
            : n < 0 || vectors > length                      ? -2
            : k < 0 || k > vectors                           ? -3
            : *lda < std::max<Index>(1, m)                   ? -5
            : !query && *lwork < std::max<Index>(1, vectors) ? -8
                                                             : 0;
    const T wanted = workspace_size<T>(std::max<Index>(1, vectors) * work_columns);
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (query || vectors == 0) {
        work[0] = query ? wanted : T(1);
        return;
    }
    serve(
        Call(routine, m, n, k), lq ? lq_pays(m, n, k) : form_pays(m, n, k),
        [&] { return reflector_workspace<T>(length, vectors, k) + (lq ? sizeof(T) * 1.0 * m * n : 0); },
        [&](Context<Host>& ctx) {
            const MatrixView<T> Q(A, m, n, *lda);
            const auto form = [&](MatrixView<T> V) { form_q_in_place<T>(ctx, k, V, tau); };
            if (lq) through_transpose<T>(ctx, Q, form);
            if (!lq) form(Q);
            return lq ? "transposed" : "blocked";
        },
        pass_on, info);
    work[0] = wanted;
}

template <Of of, class T, class Int, class Next>
void ormqr(const char* routine, const Next& pass_on, const char* side, const char* trans, const Int* m_, const Int* n_,
           const Int* k_, const T* A, const Int* lda, const T* tau, T* C, const Int* ldc, T* work, const Int* lwork,
           Int* info) {
    const Index m = *m_, n = *n_, k = *k_;
    const bool left = is(side, 'L'), query = *lwork == -1;
    constexpr bool lq = of == Of::LQ;
    const Index order = left ? m : n, others = std::max<Index>(1, left ? n : m);
    const int illegal = illegal_in_product(side, trans, m, n, k, order);
    *info = illegal != 0                                ? illegal
            : *lda < std::max<Index>(1, lq ? k : order) ? -7
            : *ldc < std::max<Index>(1, m)              ? -10
            : !query && *lwork < others                 ? -12
                                                        : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const bool nothing = m == 0 || n == 0 || k == 0;
    const T wanted = nothing ? T(1) : workspace_size<T>(others * work_columns + t_size);
    if (!query && !nothing) {
        serve(
            Call(routine, m, n, k),
            (lq ? lq_apply_pays(order, others, k) : apply_pays(order, others, k)) ||
                near_overflow<T>(MatrixView<const T>(C, m, n, *ldc)),
            [&] { return reflector_workspace<T>(order, others, k) + (lq ? sizeof(T) * 1.0 * order * k : 0); },
            [&](Context<Host>& ctx) {
                const MatrixView<T> CC(C, m, n, *ldc);
                if (!lq) {
                    const MatrixView<const T> V(A, order, k, *lda);
                    apply_in_place<T>(ctx, side_of(side), op_of(trans), V, tau, CC);
                    return "blocked";
                }
                const Matrix<T> V = transposed<T, Host>(ctx, {A, k, order, *lda});
                const Op op = op_of(trans) == Op::None ? Op::Transpose : Op::None;
                apply_in_place<T>(ctx, side_of(side), op, V.view(), tau, CC);
                return "transposed";
            },
            pass_on, info);
    }
    work[0] = wanted;
}

}  // namespace

#define QUOIN_ORGQR_AS(T, Int, form, apply, of, ...)                                                                 \
    QUOIN_LAPACK_ROUTINE(form, orgqr<of>,                                                                            \
                         (const Int* m, const Int* n, const Int* k, T* A, const Int* lda, const T* tau, T* work,     \
                          const Int* lwork, Int* info),                                                              \
                         (m, n, k, A, lda, tau, work, lwork, info), __VA_ARGS__)                                     \
    QUOIN_LAPACK_ROUTINE(apply, ormqr<of>,                                                                           \
                         (const char* side, const char* trans, const Int* m, const Int* n, const Int* k, const T* A, \
                          const Int* lda, const T* tau, T* C, const Int* ldc, T* work, const Int* lwork, Int* info), \
                         (side, trans, m, n, k, A, lda, tau, C, ldc, work, lwork, info), __VA_ARGS__)
#define QUOIN_ORGQR(T, Int, ...)                              \
    QUOIN_ORGQR_AS(T, Int, orgqr, ormqr, Of::QR, __VA_ARGS__) \
    QUOIN_ORGQR_AS(T, Int, orglq, ormlq, Of::LQ, __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_ORGQR)
#undef QUOIN_ORGQR
#undef QUOIN_ORGQR_AS

}  // namespace quoin::lapack
