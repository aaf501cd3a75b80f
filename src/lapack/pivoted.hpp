#pragma once

// Column pivoting in LAPACK's format: ?geqp3, for the routines that are built on it.

#include "primitives/pivots.hpp"
#include "quoin/matrix.hpp"

namespace quoin::lapack {

/// Factors rows and columns `steps` of `columns.A` by greedy pivots, panel by panel. Stops before a column if no
/// remaining norm is above `tolerance`; a negative one never stops. Returns the column where it stops.
template <class T>
Index factor_greedily(Context<Host>& ctx, const PivotedColumns<T, Host>& columns, Range steps, double tolerance,
                      T* tau);

/// Returns R (n×n) of a tall A. A is only read.
template <class T>
Matrix<T> r_of(Context<Host>& ctx, MatrixView<const T> A);

/// A P = Q R as ?geqp3: V, R and tau of length min(m, n); jpvt is in and out. Columns with jpvt ≠ 0 come first.
/// Returns the name of the method.
template <class T, class Int>
const char* factor_with_pivots_in_place(Context<Host>& ctx, MatrixView<T> A, Int* jpvt, T* tau);

/// Returns the bytes of workspace of `factor_with_pivots_in_place` for an m×n matrix.
template <class T>
double pivoted_workspace(Index m, Index n);

}  // namespace quoin::lapack
