// ?geqrt, ?geqrt3 and ?gemqrt: A = Q R with the triangular factors T kept, and products with Q.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <class T, class Int, class Next, class PassOn>
void factor(const char* routine, Index m, Index n, Index nb, T* A, Index lda, T* Tf, Index ldt, Next* next,
            PassOn pass_on, Int* info) {
    const Index k = std::min(m, n);
    const MatrixView<T> AA(A, m, n, lda);
    serve(
        Call(routine, m, n, k), (factor_pays(m, n) && panels_pay(nb)) || near_overflow<T>(AA),
        [&] { return plan_in_place<T>(m, n).workspace_bytes; },
        [&](Context<Host>& ctx) { return factor_in_place<T>(ctx, nb, AA, MatrixView<T>(Tf, nb, k, ldt)); }, next,
        pass_on, info);
}

template <class T, class Int, class Next>
void geqrt(const char* routine, Next* next, const Int* m_, const Int* n_, const Int* nb_, T* A, const Int* lda, T* Tf,
           const Int* ldt, T* work, Int* info) {
    const Index m = *m_, n = *n_, nb = *nb_, k = std::min(m, n);
    *info = m < 0                          ? -1
            : n < 0                        ? -2
            : nb < 1 || (nb > k && k > 0)  ? -3
            : *lda < std::max<Index>(1, m) ? -5
            : *ldt < nb                    ? -7
                                           : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (k == 0) return;
    factor(
        routine, m, n, nb, A, *lda, Tf, *ldt, next, [&] { next(m_, n_, nb_, A, lda, Tf, ldt, work, info); }, info);
}

template <class T, class Int, class Next>
void geqrt3(const char* routine, Next* next, const Int* m_, const Int* n_, T* A, const Int* lda, T* Tf, const Int* ldt,
            Int* info) {
    const Index m = *m_, n = *n_;
    *info = n < 0 ? -2 : m < n ? -1 : *lda < std::max<Index>(1, m) ? -4 : *ldt < std::max<Index>(1, n) ? -6 : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (n == 0) return;
    factor(
        routine, m, n, n, A, *lda, Tf, *ldt, next, [&] { next(m_, n_, A, lda, Tf, ldt, info); }, info);
}

template <class T, class Int, class Next>
void gemqrt(const char* routine, Next* next, const char* side, const char* trans, const Int* m_, const Int* n_,
            const Int* k_, const Int* nb_, const T* V, const Int* ldv, const T* Tf, const Int* ldt, T* C,
            const Int* ldc, T* work, Int* info) {
    const Index m = *m_, n = *n_, k = *k_, nb = *nb_;
    const bool left = is(side, 'L');
    const Index order = left ? m : n, others = left ? n : m;
    *info = !left && !is(side, 'R')              ? -1
            : !is(trans, 'N') && !is(trans, 'T') ? -2
            : m < 0                              ? -3
            : n < 0                              ? -4
            : k < 0 || k > order                 ? -5
            : nb < 1 || (nb > k && k > 0)        ? -6
            : *ldv < std::max<Index>(1, order)   ? -8
            : *ldt < nb                          ? -10
            : *ldc < std::max<Index>(1, m)       ? -12
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
        next, [&] { next(side, trans, m_, n_, k_, nb_, V, ldv, Tf, ldt, C, ldc, work, info, 1, 1); }, info);
}

}  // namespace

#define QUOIN_GEQRT(T, Int, p, before, after)                                                                         \
    QUOIN_LAPACK_ABI void before##p##geqrt##after(const Int* m, const Int* n, const Int* nb, T* A, const Int* lda,    \
                                                  T* Tf, const Int* ldt, T* work, Int* info) {                        \
        static const auto next = QUOIN_LAPACK_NEXT(before##p##geqrt##after);                                          \
        geqrt<T, Int>(QUOIN_LAPACK_NAME(p, "GEQRT"), next, m, n, nb, A, lda, Tf, ldt, work, info);                    \
    }                                                                                                                 \
    QUOIN_LAPACK_ABI void before##p##geqrt3##after(const Int* m, const Int* n, T* A, const Int* lda, T* Tf,           \
                                                   const Int* ldt, Int* info) {                                       \
        static const auto next = QUOIN_LAPACK_NEXT(before##p##geqrt3##after);                                         \
        geqrt3<T, Int>(QUOIN_LAPACK_NAME(p, "GEQRT3"), next, m, n, A, lda, Tf, ldt, info);                            \
    }                                                                                                                 \
    QUOIN_LAPACK_ABI void before##p##gemqrt##after(                                                                   \
        const char* side, const char* trans, const Int* m, const Int* n, const Int* k, const Int* nb, const T* V,     \
        const Int* ldv, const T* Tf, const Int* ldt, T* C, const Int* ldc, T* work, Int* info) {                      \
        static const auto next = QUOIN_LAPACK_NEXT(before##p##gemqrt##after);                                         \
        gemqrt<T, Int>(QUOIN_LAPACK_NAME(p, "GEMQRT"), next, side, trans, m, n, k, nb, V, ldv, Tf, ldt, C, ldc, work, \
                       info);                                                                                         \
    }
QUOIN_LAPACK_EXPORT(QUOIN_GEQRT)
#undef QUOIN_GEQRT

}  // namespace quoin::lapack
