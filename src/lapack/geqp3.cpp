// ?geqp3: A P = Q R with greedy pivots, which are the reference's but for rounding (docs/pivoting.md).

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/pivoted.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <class T, class Int, class Next>
void geqp3(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, T* A, const Int* lda, Int* jpvt,
           T* tau, T* work, const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, k = std::min(m, n);
    const bool query = *lwork == -1;
    *info = m < 0                                         ? -1
            : n < 0                                       ? -2
            : *lda < std::max<Index>(1, m)                ? -4
            : !query && *lwork < (k == 0 ? 1 : 3 * n + 1) ? -8
                                                          : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const T wanted = workspace_size<T>(k == 0 ? 1 : std::max(3 * n + 1, 2 * n + (n + 1) * work_columns));
    if (!query && k > 0) {
        const MatrixView<T> AA(A, m, n, *lda);
        serve(
            Call(routine, m, n, k), (factor_pays(m, n) && pivots_of_r_pay(m, n)) || near_overflow<T>(AA),
            [&] { return pivoted_workspace<T>(m, n); },
            [&](Context<Host>& ctx) { return factor_with_pivots_in_place<T>(ctx, AA, jpvt, tau); }, pass_on, info);
    }
    work[0] = wanted;
}

}  // namespace

#define QUOIN_GEQP3(T, Int, ...)                                                                                     \
    QUOIN_LAPACK_ROUTINE(                                                                                            \
        geqp3, geqp3,                                                                                                \
        (const Int* m, const Int* n, T* A, const Int* lda, Int* jpvt, T* tau, T* work, const Int* lwork, Int* info), \
        (m, n, A, lda, jpvt, tau, work, lwork, info), __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_GEQP3)
#undef QUOIN_GEQP3

}  // namespace quoin::lapack
