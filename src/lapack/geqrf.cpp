// ?geqrf and ?geqr2: A = Q R. ?gelqf and ?gelq2: A = L Q, by the QR factorization of Aᵀ.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <Of of, class T, class Int, class Next>
void factor(const char* routine, const Next& pass_on, Index m, Index n, T* A, Index lda, T* tau, Int* info) {
    const MatrixView<T> AA(A, m, n, lda);
    constexpr bool lq = of == Of::LQ;
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
        pass_on, info);
}

template <Of of, class T, class Int, class Next>
void geqrf(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, T* A, const Int* lda, T* tau,
           T* work, const Int* lwork, Int* info) {
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
    if (!query && k > 0) factor<of>(routine, pass_on, m, n, A, *lda, tau, info);
    work[0] = wanted;
}

template <Of of, class T, class Int, class Next>
void geqr2(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, T* A, const Int* lda, T* tau, T*,
           Int* info) {
    const Index m = *m_, n = *n_;
    *info = m < 0 ? -1 : n < 0 ? -2 : *lda < std::max<Index>(1, m) ? -4 : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (std::min(m, n) > 0) factor<of>(routine, pass_on, m, n, A, *lda, tau, info);
}

}  // namespace

#define QUOIN_GEQRF_AS(T, Int, qrf, qr2, of, ...)                                                         \
    QUOIN_LAPACK_ROUTINE(                                                                                 \
        qrf, geqrf<of>,                                                                                   \
        (const Int* m, const Int* n, T* A, const Int* lda, T* tau, T* work, const Int* lwork, Int* info), \
        (m, n, A, lda, tau, work, lwork, info), __VA_ARGS__)                                              \
    QUOIN_LAPACK_ROUTINE(qr2, geqr2<of>,                                                                  \
                         (const Int* m, const Int* n, T* A, const Int* lda, T* tau, T* work, Int* info),  \
                         (m, n, A, lda, tau, work, info), __VA_ARGS__)
#define QUOIN_GEQRF(T, Int, ...)                              \
    QUOIN_GEQRF_AS(T, Int, geqrf, geqr2, Of::QR, __VA_ARGS__) \
    QUOIN_GEQRF_AS(T, Int, gelqf, gelq2, Of::LQ, __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_GEQRF)
#undef QUOIN_GEQRF
#undef QUOIN_GEQRF_AS

}  // namespace quoin::lapack
