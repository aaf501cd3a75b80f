#pragma once

// Column pivoting: greedy panels, and permutations of columns.

#include <limits>

#include "primitives/context.hpp"

namespace quoin {

/// The columns that pivoting orders, and what moves with them.
template <class T, class D>
struct PivotedColumns {
    MatrixView<T, D> A;            ///< m×n
    MatrixView<Index, D> order;    ///< n×1, the place that each column came from
    MatrixView<Real<T>, D> norms;  ///< n×2: norms of the remaining columns, and these norms when they were computed
    /// n×1, or without data: column j stands for 2^e_j times itself where norms are compared.
    MatrixView<int, D> exponents{};
};

/// A P = H [R; A₂₂] for rows and columns from `first` on, whose norms are given: one panel of at most tau.rows columns.
/// Column `first` + i becomes the remaining column of largest norm, the first one of equals. V and R overwrite the
/// panel's columns, R its rows, A₂₂ the rest; `tau` receives the reflectors' tau, F (tau.rows×n) is workspace. Moves
/// whole columns. Stops before a column if no remaining norm is above `tolerance`; a negative one never stops. Returns
/// the number of columns of the panel. Waits if there is a tolerance.
///
/// Norms are downdated, and computed anew where that lost half of their digits (Drmač and Bujanović 2008). On the host
/// A₂₂ takes the panel at once: A₂₂ −= V F, F = (A V T)ᵀ (Quintana-Ortí, Sun and Bischof 1998). On a GPU, and if A is
/// small, A₂₂ takes every reflector as it comes, and F is not used. 4mnb flops for b columns. Half of them are bound by
/// memory on the host, all on a GPU if A does not fit its shared memory.
template <class T, class D>
Index factor_pivoted(Context<D>& ctx, PivotedColumns<T, D> columns, Index first, double tolerance, View<T, D> tau,
                     View<T, D> F);

/// Chooses pivots in a sketch of a matrix: Y P = H [S; Y₂₂] with `width` columns in S, whose norms are given. S and Y₂₂
/// overwrite Y. What is below S has no meaning, nor have the norms. Y.order receives P.
///
/// On the host by `factor_pivoted`. On a GPU a pivot has at least half of the largest norm instead of all of it, and
/// several are chosen at a time (cuda/pivots/sketch_pivots.cuh). 4hnb flops for h rows and b pivots.
template <class T, class D>
void pivot_sketch(Context<D>& ctx, PivotedColumns<T, D> Y, Index width);

/// Chooses greedy pivots in a Gram matrix (n×n, upper triangle): G := PᵀGP = RᵀR, where r_kk² is the largest diagonal
/// entry of the Schur complement, the first one of equals. `order` (n×1) receives P, for any G. n is at most
/// `max_pivoted_gram`. n³/3 flops, n³ on the host.
template <class T, class D>
void pivot_gram(Context<D>& ctx, View<Sum<T, D>, D> G, View<Index, D> order);
template <class D>
Index max_pivoted_gram(Context<D>& ctx);

/// A(:, j) := A(:, order_j), in place. `order` is a permutation of A's columns, and moves at most `most` of them.
template <class T, class D>
void permute_columns(Context<D>& ctx, View<const Index, D> order, View<T, D> A,
                     Index most = std::numeric_limits<Index>::max());

}  // namespace quoin
