#pragma once

// QR with column pivoting: by blocks, or with all pivots chosen before the factorization.

#include <span>
#include <vector>

#include "algorithms/one_matrix/reflector_forest.hpp"

namespace quoin {

/// Factors the forest's A P = QR by the plan's pivots, panel by panel, until the plan's limits stop it. Lays out its
/// panels. Returns the number of columns of Q. `order` receives P. `exponents` (n×1, or without data) are the e_j of
/// columns scaled by 2^-e_j, and are permuted with them. Waits.
template <class T, class D>
Index factor_with_pivots(Context<D>& ctx, const Plan& plan, ReflectorForest<T, D>& forest, MatrixView<int, D> exponents,
                         std::vector<Index>& order);

/// Returns the rows of the random signs G in a sketch of `rows` rows: Gᵀ A, or Gᵀ (E A) if E, a sparse embedding,
/// has far fewer rows than A.
template <class D>
Index sign_rows(Index m, Index rows) {
    const Index embedded = sketch_rows(rows);
    return rows <= Tuning<D>::max_sketch_cols && m >= 16 * embedded ? embedded : m;
}

/// Returns pivots of a tall A: the pivots of a sketch of A, or of A's R for Pivots::Greedy. Waits.
template <class T, class D>
std::vector<Index> pivots_of(Context<D>& ctx, const PivotPlan& pivoting, MatrixView<const T, D> A,
                             MatrixView<const int, D> exponents);

/// Returns the number of |r_jj| > larger·u max |r_ii|, R of a matrix whose `larger` dimension is given. Waits.
template <class T, class D>
Index numerical_rank(Context<D>& ctx, Index larger, MatrixView<const T, D> R);

/// Returns the permutation that undoes `order`.
std::vector<Index> inverse_of(std::span<const Index> order);

/// A := A P.
template <class T, class D>
void permute(Context<D>& ctx, const std::vector<Index>& order, MatrixView<T, D> A);

}  // namespace quoin
