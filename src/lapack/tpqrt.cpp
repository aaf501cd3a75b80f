// ?tpqrt and ?tpmqrt: a triangle on a pentagon, [R; B] = Q [R'; 0], and products with Q.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/stacked.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <class T, class Int, class Next>
void tpqrt(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, const Int* l_, const Int* nb_, T* A,
           const Int* lda, T* B, const Int* ldb, T* Tf, const Int* ldt, T*, Int* info) {
    const Index m = *m_, n = *n_, l = *l_, nb = *nb_;
    *info = m < 0                          ? -1
            : n < 0                        ? -2
            : l < 0 || l > std::min(m, n)  ? -3
            : nb < 1 || (nb > n && n > 0)  ? -4
            : *lda < std::max<Index>(1, n) ? -6
            : *ldb < std::max<Index>(1, m) ? -8
            : *ldt < nb                    ? -10
                                           : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (m == 0 || n == 0) return;
    const Stack stack{m, n, nb, m, l};
    const MatrixView<T> R(A, n, n, *lda), BB(B, m, n, *ldb);
    const auto large = [&] {
        return near_overflow<T>(R, [](Index j) { return j + 1; }) ||
               near_overflow<T>(BB, [&](Index j) { return m - l + std::min(l, j + 1); });
    };
    serve(
        Call(routine, m, n, n), (factor_pays(m, n) && panels_pay(nb)) || large(),
        [&] { return stacked_workspace<T>(stack, n); },
        [&](Context<Host>& ctx) {
            factor_stacked<T>(ctx, stack, R, BB, MatrixView<T>(Tf, nb, n, *ldt));
            return "stacked";
        },
        pass_on, info);
}

template <class T, class Int, class Next>
void tpmqrt(const char* routine, const Next& pass_on, const char* side, const char* trans, const Int* m_, const Int* n_,
            const Int* k_, const Int* l_, const Int* nb_, const T* V, const Int* ldv, const T* Tf, const Int* ldt, T* A,
            const Int* lda, T* B, const Int* ldb, T*, Int* info) {
    const Index m = *m_, n = *n_, k = *k_, l = *l_, nb = *nb_;
    const bool left = is(side, 'L');
    const Index order = left ? m : n, others = left ? n : m;
    *info = !left && !is(side, 'R')                   ? -1
            : !is(trans, 'N') && !is(trans, 'T')      ? -2
            : m < 0                                   ? -3
            : n < 0                                   ? -4
            : k < 0                                   ? -5
            : l < 0 || l > k                          ? -6
            : nb < 1 || (nb > k && k > 0)             ? -7
            : *ldv < std::max<Index>(1, order)        ? -9
            : *ldt < nb                               ? -11
            : *lda < std::max<Index>(1, left ? k : m) ? -13
            : *ldb < std::max<Index>(1, m)            ? -15
                                                      : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (m == 0 || n == 0 || k == 0) return;
    const Stack stack{order, k, nb, order, std::min(l, order)};
    serve(
        Call(routine, m, n, k),
        (apply_pays(order, others, k) && panels_pay(nb)) || near_overflow<T>(MatrixView<const T>(B, m, n, *ldb)) ||
            near_overflow<T>(MatrixView<const T>(A, left ? k : m, left ? n : k, *lda)),
        [&] { return stacked_workspace<T>(stack, others); },
        [&](Context<Host>& ctx) {
            apply_stacked<T>(ctx, side_of(side), op_of(trans), stack, MatrixView<const T>(V, order, k, *ldv),
                             MatrixView<const T>(Tf, nb, k, *ldt), MatrixView<T>(A, left ? k : m, left ? n : k, *lda),
                             MatrixView<T>(B, m, n, *ldb));
            return "stacked";
        },
        pass_on, info);
}

}  // namespace

#define QUOIN_TPQRT(T, Int, ...)                                                                                       \
    QUOIN_LAPACK_ROUTINE(tpqrt, tpqrt,                                                                                 \
                         (const Int* m, const Int* n, const Int* l, const Int* nb, T* A, const Int* lda, T* B,         \
                          const Int* ldb, T* Tf, const Int* ldt, T* work, Int* info),                                  \
                         (m, n, l, nb, A, lda, B, ldb, Tf, ldt, work, info), __VA_ARGS__)                              \
    QUOIN_LAPACK_ROUTINE(tpmqrt, tpmqrt,                                                                               \
                         (const char* side, const char* trans, const Int* m, const Int* n, const Int* k, const Int* l, \
                          const Int* nb, const T* V, const Int* ldv, const T* Tf, const Int* ldt, T* A,                \
                          const Int* lda, T* B, const Int* ldb, T* work, Int* info),                                   \
                         (side, trans, m, n, k, l, nb, V, ldv, Tf, ldt, A, lda, B, ldb, work, info), __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_TPQRT)
#undef QUOIN_TPQRT

}  // namespace quoin::lapack
