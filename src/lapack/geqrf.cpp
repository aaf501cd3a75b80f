// ?geqrf and ?geqr2: A = Q R.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <class T, class Int, class Next, class PassOn>
void factor(const char* routine, Index m, Index n, T* A, Index lda, T* tau, Next* next, PassOn pass_on, Int* info) {
    const MatrixView<T> AA(A, m, n, lda);
    Plan plan;
    serve(
        Call(routine, m, n, std::min(m, n)), factor_pays(m, n) || near_overflow<T>(AA),
        [&] { return (plan = plan_in_place<T>(m, n)).workspace_bytes; },
        [&](Context<Host>& ctx) { return factor_in_place<T>(ctx, plan, AA, tau); }, next, pass_on, info);
}

template <class T, class Int, class Next>
void geqrf(const char* routine, Next* next, const Int* m_, const Int* n_, T* A, const Int* lda, T* tau, T* work,
           const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, k = std::min(m, n);
    const bool query = *lwork == -1;
    *info = m < 0                                                                  ? -1
            : n < 0                                                                ? -2
            : *lda < std::max<Index>(1, m)                                         ? -4
            : !query && (*lwork <= 0 || (m > 0 && *lwork < std::max<Index>(1, n))) ? -7
                                                                                   : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const T wanted = workspace_size<T>(k == 0 ? 1 : n * work_columns);
    if (!query && k > 0) {
        factor(
            routine, m, n, A, *lda, tau, next, [&] { next(m_, n_, A, lda, tau, work, lwork, info); }, info);
    }
    work[0] = wanted;
}

template <class T, class Int, class Next>
void geqr2(const char* routine, Next* next, const Int* m_, const Int* n_, T* A, const Int* lda, T* tau, T* work,
           Int* info) {
    const Index m = *m_, n = *n_;
    *info = m < 0 ? -1 : n < 0 ? -2 : *lda < std::max<Index>(1, m) ? -4 : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (std::min(m, n) == 0) return;
    factor(
        routine, m, n, A, *lda, tau, next, [&] { next(m_, n_, A, lda, tau, work, info); }, info);
}

}  // namespace

#define QUOIN_GEQRF(T, Int, p, before, after)                                                                        \
    QUOIN_LAPACK_ABI void before##p##geqrf##after(const Int* m, const Int* n, T* A, const Int* lda, T* tau, T* work, \
                                                  const Int* lwork, Int* info) {                                     \
        static const auto next = QUOIN_LAPACK_NEXT(before##p##geqrf##after);                                         \
        geqrf<T, Int>(QUOIN_LAPACK_NAME(p, "GEQRF"), next, m, n, A, lda, tau, work, lwork, info);                    \
    }                                                                                                                \
    QUOIN_LAPACK_ABI void before##p##geqr2##after(const Int* m, const Int* n, T* A, const Int* lda, T* tau, T* work, \
                                                  Int* info) {                                                       \
        static const auto next = QUOIN_LAPACK_NEXT(before##p##geqr2##after);                                         \
        geqr2<T, Int>(QUOIN_LAPACK_NAME(p, "GEQR2"), next, m, n, A, lda, tau, work, info);                           \
    }
QUOIN_LAPACK_EXPORT(QUOIN_GEQRF)
#undef QUOIN_GEQRF

}  // namespace quoin::lapack
