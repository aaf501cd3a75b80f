// ?geqrf and ?geqr2: A = Q R. ?gelqf and ?gelq2: A = L Q, by the QR factorization of Aᵀ.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <class T, class Int, class Next, class PassOn>
void factor(const char* routine, Of of, Index m, Index n, T* A, Index lda, T* tau, Next* next, PassOn pass_on,
            Int* info) {
    const MatrixView<T> AA(A, m, n, lda);
    const bool lq = of == Of::LQ;
    Plan plan;
    serve(
        Call(routine, m, n, std::min(m, n)),
        (lq ? lq_pays(m, n, std::min(m, n)) : factor_pays(m, n)) || near_overflow<T>(AA),
        [&] {
            plan = lq ? plan_in_place<T>(n, m) : plan_in_place<T>(m, n);
            return plan.workspace_bytes + (lq ? sizeof(T) * 1.0 * m * n : 0);
        },
        [&](Context<Host>& ctx) {
            if (!lq) return factor_in_place<T>(ctx, plan, AA, tau);
            through_transpose<T>(ctx, AA, [&](MatrixView<T> At) { factor_in_place<T>(ctx, plan, At, tau); });
            return "transposed";
        },
        next, pass_on, info);
}

template <class T, class Int, class Next>
void geqrf(const char* routine, Of of, Next* next, const Int* m_, const Int* n_, T* A, const Int* lda, T* tau, T* work,
           const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, k = std::min(m, n);
    const Index length = of == Of::LQ ? n : m, vectors = of == Of::LQ ? m : n;
    const bool query = *lwork == -1;
    *info = m < 0                                                                             ? -1
            : n < 0                                                                           ? -2
            : *lda < std::max<Index>(1, m)                                                    ? -4
            : !query && (*lwork <= 0 || (length > 0 && *lwork < std::max<Index>(1, vectors))) ? -7
                                                                                              : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const T wanted = workspace_size<T>(k == 0 ? 1 : vectors * work_columns);
    if (!query && k > 0) {
        factor(
            routine, of, m, n, A, *lda, tau, next, [&] { next(m_, n_, A, lda, tau, work, lwork, info); }, info);
    }
    work[0] = wanted;
}

template <class T, class Int, class Next>
void geqr2(const char* routine, Of of, Next* next, const Int* m_, const Int* n_, T* A, const Int* lda, T* tau, T* work,
           Int* info) {
    const Index m = *m_, n = *n_;
    *info = m < 0 ? -1 : n < 0 ? -2 : *lda < std::max<Index>(1, m) ? -4 : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (std::min(m, n) == 0) return;
    factor(
        routine, of, m, n, A, *lda, tau, next, [&] { next(m_, n_, A, lda, tau, work, info); }, info);
}

}  // namespace

#define QUOIN_GEQRF_AS(T, Int, p, before, after, qrf, QRF, qr2, QR2, of)                                           \
    QUOIN_LAPACK_ABI void before##p##qrf##after(const Int* m, const Int* n, T* A, const Int* lda, T* tau, T* work, \
                                                const Int* lwork, Int* info) {                                     \
        static const auto next = QUOIN_LAPACK_NEXT(before##p##qrf##after);                                         \
        geqrf<T, Int>(QUOIN_LAPACK_NAME(p, QRF), of, next, m, n, A, lda, tau, work, lwork, info);                  \
    }                                                                                                              \
    QUOIN_LAPACK_ABI void before##p##qr2##after(const Int* m, const Int* n, T* A, const Int* lda, T* tau, T* work, \
                                                Int* info) {                                                       \
        static const auto next = QUOIN_LAPACK_NEXT(before##p##qr2##after);                                         \
        geqr2<T, Int>(QUOIN_LAPACK_NAME(p, QR2), of, next, m, n, A, lda, tau, work, info);                         \
    }
#define QUOIN_GEQRF(T, Int, p, before, after)                                        \
    QUOIN_GEQRF_AS(T, Int, p, before, after, geqrf, "GEQRF", geqr2, "GEQR2", Of::QR) \
    QUOIN_GEQRF_AS(T, Int, p, before, after, gelqf, "GELQF", gelq2, "GELQ2", Of::LQ)
QUOIN_LAPACK_EXPORT(QUOIN_GEQRF)
#undef QUOIN_GEQRF
#undef QUOIN_GEQRF_AS

}  // namespace quoin::lapack
