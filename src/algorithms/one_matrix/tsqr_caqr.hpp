#pragma once

// TSQR and CAQR: factorizations whose panels are reduced over trees. On a GPU they are TreeQ (batch_tree.hpp).

#include "algorithms/one_matrix/reflector_forest.hpp"

namespace quoin {

/// Factors by TSQR or CAQR on the host: every panel is reduced over its tree; the trailing matrix is updated leaf by
/// leaf and level by level.
template <class T, class D>
void factor_trees(Context<D>& ctx, ReflectorForest<T, D>& forest);

/// A := Q, and computes R (n×n), for a tall A by the tree of `plan`, a plan for as many rows and columns or more.
template <class T, class D>
void orthonormalize_by_tree(Context<D>& ctx, const Plan& plan, MatrixView<T, D> A, MatrixView<T, D> R);

/// Computes R (n×n) alone of a tall matrix by TSQR. A is only read. Unless `checked`, returns false on a GPU if columns
/// are not finite or out of range, and waits.
template <class T, class D>
bool tsqr_r_only(Context<D>& ctx, const Plan& plan, InputView<T, D> A, bool checked, MatrixView<T, D> R);

}  // namespace quoin
