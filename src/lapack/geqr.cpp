// ?geqr and ?gemqr: A = Q R in the form that is fastest for its shape, and products with Q.
//
// T begins as the reference's does, T(1:3) = its size, MB and NB, and has the factors of ?latsqr (row blocks of MB,
// panels of NB) from T(6) on, so that either library reads what the other wrote. Quoin writes MB = M, one row block; NB
// = 1, where T is tau, in a T of the least size.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/stacked.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

constexpr Index header = 5;

template <class T, class Int, class Next>
void geqr(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, T* A, const Int* lda, T* Tf,
          const Int* tsize, T* work, const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, k = std::min(m, n);
    *info = m < 0 ? -1 : n < 0 ? -2 : *lda < std::max<Index>(1, m) ? -4 : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const auto asks = [](Int size) { return size == -1 || size == -2; };
    const bool query = asks(*tsize) || asks(*lwork), least = *tsize == -2 || *lwork == -2;
    const MatrixView<T> V(A, m, n, *lda);
    // a query returns the sizes of the library that will factor, except that it does not see the entries
    const bool pays = geqr_pays(m, n) || (!query && near_overflow<T>(V)), may_pass = pass_on.next && may_pass_on(),
               passes_on = may_pass && !pays;
    if (query && passes_on) return pass_on();
    const Index min_t = n + header, min_work = std::max<Index>(1, n);
    *info = !query && *tsize < min_t ? -6 : !query && *lwork < n ? -8 : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    const Plan plan = k == 0 || passes_on ? Plan() : plan_in_place<T>(m, n);
    Index nb = std::max<Index>(1, plan.panel_width);
    // a caller with the next library's sizes has ?gemqr's workspace for its block size
    if (!query && (*tsize < nb * n + header || (may_pass && !geqr_pays(m, n)))) nb = 1;
    const auto describe = [&] {
        Tf[0] = workspace_size<T>(least && *tsize != -1 ? min_t : nb * n + header);
        Tf[1] = workspace_size<T>(m);
        Tf[2] = static_cast<T>(nb);
        work[0] = workspace_size<T>(least && *lwork != -1 ? min_work : std::max<Index>(1, nb * n));
    };
    if (query || k == 0) return describe();
    serve(
        Call(routine, m, n, k), pays, [&] { return plan.workspace_bytes; },
        [&](Context<Host>& ctx) {
            describe();
            return nb == 1 ? factor_in_place<T>(ctx, plan, V, Tf + header)
                           : factor_in_place<T>(ctx, plan, V, MatrixView<T>(Tf + header, nb, k));
        },
        pass_on, info);
}

template <class T, class Int, class Next>
void gemqr(const char* routine, const Next& pass_on, const char* side, const char* trans, const Int* m_, const Int* n_,
           const Int* k_, const T* A, const Int* lda, const T* Tf, const Int* tsize, T* C, const Int* ldc, T* work,
           const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, k = *k_;
    const bool left = is(side, 'L'), query = *lwork == -1, nothing = std::min({m, n, k}) == 0;
    const Index order = left ? m : n, others = left ? n : m;
    const bool described = *tsize >= header;
    const Index mb = described ? static_cast<Index>(Tf[1]) : 0, nb = described ? static_cast<Index>(Tf[2]) : 0;
    const Index least = nothing ? 1 : std::max<Index>(1, (left ? n : mb) * nb);
    const int illegal = illegal_in_product(side, trans, m, n, k, order);
    *info = illegal != 0                       ? illegal
            : *lda < std::max<Index>(1, order) ? -7
            : !described                       ? -9
            : *ldc < std::max<Index>(1, m)     ? -11
            : !query && *lwork < least         ? -13
            : nb < 1 && !nothing               ? -8
                                               : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (!query && !nothing) {
        const bool is_tau = nb == 1 && (mb <= k || mb >= order);
        serve(
            Call(routine, m, n, k),
            reference_fails(left, m, order, mb) || (apply_pays(order, others, k) && (is_tau || panels_pay(nb))) ||
                near_overflow<T>(MatrixView<const T>(C, m, n, *ldc)),
            [&] { return row_blocks_workspace<T>(order, k, mb, nb, others); },
            [&](Context<Host>& ctx) {
                const MatrixView<const T> V(A, order, k, *lda);
                const MatrixView<T> CC(C, m, n, *ldc);
                if (!is_tau) {
                    const MatrixView<const T> factors(Tf + header, nb, row_block_t_cols(order, k, mb));
                    return apply_row_blocks<T>(ctx, side_of(side), op_of(trans), mb, nb, V, factors, CC);
                }
                apply_in_place<T>(ctx, side_of(side), op_of(trans), V, Tf + header, CC);
                return "blocked";
            },
            pass_on, info);
    }
    work[0] = workspace_size<T>(least);
}

}  // namespace

#define QUOIN_GEQR(T, Int, ...)                                                                                     \
    QUOIN_LAPACK_ROUTINE(geqr, geqr,                                                                                \
                         (const Int* m, const Int* n, T* A, const Int* lda, T* Tf, const Int* tsize, T* work,       \
                          const Int* lwork, Int* info),                                                             \
                         (m, n, A, lda, Tf, tsize, work, lwork, info), __VA_ARGS__)                                 \
    QUOIN_LAPACK_ROUTINE(                                                                                           \
        gemqr, gemqr,                                                                                               \
        (const char* side, const char* trans, const Int* m, const Int* n, const Int* k, const T* A, const Int* lda, \
         const T* Tf, const Int* tsize, T* C, const Int* ldc, T* work, const Int* lwork, Int* info),                \
        (side, trans, m, n, k, A, lda, Tf, tsize, C, ldc, work, lwork, info), __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_GEQR)
#undef QUOIN_GEQR

}  // namespace quoin::lapack
