// ?geqrt, ?geqrt3 and ?gemqrt: A = Q R with the triangular factors T kept, and products with Q.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <class T, class Int, class Next>
void factor(const char* routine, const Next& pass_on, Index m, Index n, Index nb, T* A, Index lda, T* Tf, Index ldt,
            Int* info) {
    const Index k = std::min(m, n);
    const MatrixView<T> AA(A, m, n, lda);
    serve(
        Call(routine, m, n, k), (factor_pays(m, n) && panels_pay(nb)) || near_overflow<T>(AA),
        [&] { return plan_in_place<T>(m, n).workspace_bytes; },
        [&](Context<Host>& ctx) { return factor_in_place<T>(ctx, nb, AA, MatrixView<T>(Tf, nb, k, ldt)); }, pass_on,
        info);
}

template <class T, class Int, class Next>
void geqrt(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, const Int* nb_, T* A, const Int* lda,
           T* Tf, const Int* ldt, T*, Int* info) {
    const Index m = *m_, n = *n_, nb = *nb_, k = std::min(m, n);
    *info = m < 0                          ? -1
            : n < 0                        ? -2
            : nb < 1 || (nb > k && k > 0)  ? -3
            : *lda < std::max<Index>(1, m) ? -5
            : *ldt < nb                    ? -7
                                           : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (k > 0) factor(routine, pass_on, m, n, nb, A, *lda, Tf, *ldt, info);
}

template <class T, class Int, class Next>
void geqrt3(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, T* A, const Int* lda, T* Tf,
            const Int* ldt, Int* info) {
    const Index m = *m_, n = *n_;
    *info = n < 0 ? -2 : m < n ? -1 : *lda < std::max<Index>(1, m) ? -4 : *ldt < std::max<Index>(1, n) ? -6 : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (n > 0) factor(routine, pass_on, m, n, n, A, *lda, Tf, *ldt, info);
}

template <class T, class Int, class Next>
void gemqrt(const char* routine, const Next& pass_on, const char* side, const char* trans, const Int* m_, const Int* n_,
            const Int* k_, const Int* nb_, const T* V, const Int* ldv, const T* Tf, const Int* ldt, T* C,
            const Int* ldc, T*, Int* info) {
    const Index m = *m_, n = *n_, k = *k_, nb = *nb_;
    const bool left = is(side, 'L');
    const Index order = left ? m : n, others = left ? n : m;
    const int illegal = illegal_in_product(side, trans, m, n, k, order);
    *info = illegal != 0                       ? illegal
            : nb < 1 || (nb > k && k > 0)      ? -6
            : *ldv < std::max<Index>(1, order) ? -8
            : *ldt < nb                        ? -10
            : *ldc < std::max<Index>(1, m)     ? -12
                                               : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (m == 0 || n == 0 || k == 0) return;
    serve(
        Call(routine, m, n, k),
        (apply_pays(order, others, k) && panels_pay(nb)) || near_overflow<T>(MatrixView<const T>(C, m, n, *ldc)),
        [&] { return reflector_workspace<T>(order, others, k); },
        [&](Context<Host>& ctx) {
            apply_in_place<T>(ctx, side_of(side), op_of(trans), nb, MatrixView<const T>(V, order, k, *ldv),
                              MatrixView<const T>(Tf, nb, k, *ldt), MatrixView<T>(C, m, n, *ldc));
            return "blocked";
        },
        pass_on, info);
}

}  // namespace

#define QUOIN_GEQRT(T, Int, ...)                                                                                      \
    QUOIN_LAPACK_ROUTINE(                                                                                             \
        geqrt, geqrt,                                                                                                 \
        (const Int* m, const Int* n, const Int* nb, T* A, const Int* lda, T* Tf, const Int* ldt, T* work, Int* info), \
        (m, n, nb, A, lda, Tf, ldt, work, info), __VA_ARGS__)                                                         \
    QUOIN_LAPACK_ROUTINE(geqrt3, geqrt3,                                                                              \
                         (const Int* m, const Int* n, T* A, const Int* lda, T* Tf, const Int* ldt, Int* info),        \
                         (m, n, A, lda, Tf, ldt, info), __VA_ARGS__)                                                  \
    QUOIN_LAPACK_ROUTINE(                                                                                             \
        gemqrt, gemqrt,                                                                                               \
        (const char* side, const char* trans, const Int* m, const Int* n, const Int* k, const Int* nb, const T* V,    \
         const Int* ldv, const T* Tf, const Int* ldt, T* C, const Int* ldc, T* work, Int* info),                      \
        (side, trans, m, n, k, nb, V, ldv, Tf, ldt, C, ldc, work, info), __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_GEQRT)
#undef QUOIN_GEQRT

}  // namespace quoin::lapack
