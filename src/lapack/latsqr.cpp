// ?latsqr, ?lamtsqr, ?orgtsqr and ?orgtsqr_row: A = Q R of a tall matrix by row blocks, products with Q and Q's
// columns.

#include "lapack/abi.hpp"
#include "lapack/in_place.hpp"
#include "lapack/stacked.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

template <class T, class Int, class Next>
void latsqr(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, const Int* mb_, const Int* nb_,
            T* A, const Int* lda, T* Tf, const Int* ldt, T* work, const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, mb = *mb_, nb = *nb_;
    const bool query = *lwork == -1;
    const Index least = std::min(m, n) == 0 ? 1 : n * nb;
    *info = m < 0                          ? -1
            : n < 0 || m < n               ? -2
            : mb < 1                       ? -3
            : nb < 1 || (nb > n && n > 0)  ? -4
            : *lda < std::max<Index>(1, m) ? -6
            : *ldt < nb                    ? -8
            : !query && *lwork < least     ? -10
                                           : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (!query && n > 0) {
        const MatrixView<T> AA(A, m, n, *lda);
        serve(
            Call(routine, m, n, n), (factor_pays(m, n) && panels_pay(nb)) || near_overflow<T>(AA),
            [&] { return row_blocks_workspace<T>(m, n, mb, nb, n); },
            [&](Context<Host>& ctx) {
                return factor_row_blocks<T>(ctx, mb, nb, AA, MatrixView<T>(Tf, nb, row_block_t_cols(m, n, mb), *ldt));
            },
            pass_on, info);
    }
    work[0] = workspace_size<T>(least);
}

template <class T, class Int, class Next>
void lamtsqr(const char* routine, const Next& pass_on, const char* side, const char* trans, const Int* m_,
             const Int* n_, const Int* k_, const Int* mb_, const Int* nb_, const T* A, const Int* lda, const T* Tf,
             const Int* ldt, T* C, const Int* ldc, T* work, const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, k = *k_, mb = *mb_, nb = *nb_;
    const bool left = is(side, 'L'), query = *lwork == -1, nothing = std::min({m, n, k}) == 0;
    const Index order = left ? m : n, others = left ? n : m;
    const Index least = nothing ? 1 : std::max<Index>(1, (left ? n : mb) * nb);
    *info = !left && !is(side, 'R')              ? -1
            : !is(trans, 'N') && !is(trans, 'T') ? -2
            : m < k                              ? -3
            : n < 0                              ? -4
            : k < 0 || k > order                 ? -5
            : nb < 1 || nb > k                   ? -7
            : *lda < std::max<Index>(1, order)   ? -9
            : *ldt < std::max<Index>(1, nb)      ? -11
            : *ldc < std::max<Index>(1, m)       ? -13
            : !query && *lwork < least           ? -15
                                                 : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (!query && !nothing) {
        serve(
            Call(routine, m, n, k),
            reference_fails(left, m, order, mb) || (apply_pays(order, others, k) && panels_pay(nb)) ||
                near_overflow<T>(MatrixView<const T>(C, m, n, *ldc)),
            [&] { return row_blocks_workspace<T>(order, k, mb, nb, others); },
            [&](Context<Host>& ctx) {
                return apply_row_blocks<T>(
                    ctx, side_of(side), op_of(trans), mb, nb, MatrixView<const T>(A, order, k, *lda),
                    MatrixView<const T>(Tf, nb, row_block_t_cols(order, k, mb), *ldt), MatrixView<T>(C, m, n, *ldc));
            },
            pass_on, info);
    }
    work[0] = workspace_size<T>(least);
}

/// Returns the least size of ?orgtsqr's workspace, which has room for Q and for a product, and the size for a query.
inline std::pair<Index, Index> orgtsqr_sizes(Index m, Index n, Index nb) {
    return {std::max<Index>(2, (m + nb) * n), (m + nb) * n};
}
/// Returns these sizes for ?orgtsqr_row, which needs room for a product.
inline std::pair<Index, Index> orgtsqr_row_sizes(Index, Index n, Index nb) { return {1, nb * std::max(nb, n - nb)}; }

/// Serves ?orgtsqr and ?orgtsqr_row, which differ only in `sizes`(m, n, nb); nb <= n.
template <auto sizes, class T, class Int, class Next>
void orgtsqr(const char* routine, const Next& pass_on, const Int* m_, const Int* n_, const Int* mb_, const Int* nb_,
             T* A, const Int* lda, const T* Tf, const Int* ldt, T* work, const Int* lwork, Int* info) {
    const Index m = *m_, n = *n_, mb = *mb_, nb = std::min<Index>(*nb_, n);
    const bool query = *lwork == -1;
    const auto [least, wanted] = sizes(m, n, nb);
    *info = m < 0                           ? -1
            : n < 0 || m < n                ? -2
            : mb <= n                       ? -3
            : *nb_ < 1                      ? -4
            : *lda < std::max<Index>(1, m)  ? -6
            : *ldt < std::max<Index>(1, nb) ? -8
            : !query && *lwork < least      ? -10
                                            : 0;
    if (*info != 0) return report_illegal<Int>(routine, -*info);
    if (!query && n > 0) {
        serve(
            Call(routine, m, n, n), form_pays(m, n, n) && panels_pay(nb),
            [&] { return row_blocks_workspace<T>(m, n, mb, nb, n); },
            [&](Context<Host>& ctx) {
                return form_row_blocks<T>(ctx, mb, nb, MatrixView<T>(A, m, n, *lda),
                                          MatrixView<const T>(Tf, nb, row_block_t_cols(m, n, mb), *ldt));
            },
            pass_on, info);
    }
    work[0] = workspace_size<T>(wanted);
}

}  // namespace

#define QUOIN_ORGTSQR(T, Int, name, ...)                                                                               \
    QUOIN_LAPACK_ROUTINE(name, orgtsqr<name##_sizes>,                                                                  \
                         (const Int* m, const Int* n, const Int* mb, const Int* nb, T* A, const Int* lda, const T* Tf, \
                          const Int* ldt, T* work, const Int* lwork, Int* info),                                       \
                         (m, n, mb, nb, A, lda, Tf, ldt, work, lwork, info), __VA_ARGS__)
#define QUOIN_LATSQR(T, Int, ...)                                                                                      \
    QUOIN_LAPACK_ROUTINE(latsqr, latsqr,                                                                               \
                         (const Int* m, const Int* n, const Int* mb, const Int* nb, T* A, const Int* lda, T* Tf,       \
                          const Int* ldt, T* work, const Int* lwork, Int* info),                                       \
                         (m, n, mb, nb, A, lda, Tf, ldt, work, lwork, info), __VA_ARGS__)                              \
    QUOIN_LAPACK_ROUTINE(lamtsqr, lamtsqr,                                                                             \
                         (const char* side, const char* trans, const Int* m, const Int* n, const Int* k,               \
                          const Int* mb, const Int* nb, const T* A, const Int* lda, const T* Tf, const Int* ldt, T* C, \
                          const Int* ldc, T* work, const Int* lwork, Int* info),                                       \
                         (side, trans, m, n, k, mb, nb, A, lda, Tf, ldt, C, ldc, work, lwork, info), __VA_ARGS__)      \
    QUOIN_ORGTSQR(T, Int, orgtsqr, __VA_ARGS__)                                                                        \
    QUOIN_ORGTSQR(T, Int, orgtsqr_row, __VA_ARGS__)
QUOIN_LAPACK_EXPORT(QUOIN_LATSQR)
#undef QUOIN_LATSQR
#undef QUOIN_ORGTSQR

}  // namespace quoin::lapack
