#pragma once

// TSQR and CAQR: factorizations whose panels are reduced over trees.

#include "algorithms/one_matrix/reflector_forest.hpp"

namespace quoin {

/// Factors by TSQR or CAQR: every panel is reduced over its tree; the trailing matrix is updated leaf by leaf and level
/// by level.
template <class T, class D>
void factor_trees(Context<D>& ctx, ReflectorForest<T, D>& forest);

/// Computes R (n×n) of a tall A, and Q, m×n, which may be A, unless it has no data. Uses a tree whose levels are
/// batches, with leaves of `leaf_rows` rows, on devices with Tuning<D>::has_batched_trees. Unless `checked`, returns
/// false, with A unchanged, if columns are not finite or out of range.
template <class T, class D>
bool tsqr_of_batches(Context<D>& ctx, Index leaf_rows, InputView<T, D> A, bool checked, MatrixView<T, D> Q,
                     MatrixView<T, D> R);
/// A := Q, and computes R (n×n), for a tall A by a tree. `plan` is for a matrix with A's columns.
template <class T, class D>
void orthonormalize_by_tree(Context<D>& ctx, const Plan& plan, MatrixView<T, D> A, MatrixView<T, D> R);

/// Computes R (n×n) alone of a tall matrix by TSQR. A is only read.
template <class T, class D>
void tsqr_r_only(Context<D>& ctx, const Plan& plan, InputView<T, D> A, MatrixView<T, D> R);

}  // namespace quoin
