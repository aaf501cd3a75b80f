#pragma once

// A = [R 0] Z of an upper trapezoid A, in the format of ?tzrzf: the second half of a complete orthogonal decomposition.

#include "quoin/qr.hpp"

namespace quoin::lapack {

/// A (m×n, m < n) = [R 0] Z. On entry A is upper trapezoidal; entries below its diagonal are neither read nor written.
/// R overwrites the first m columns' upper triangle, the vectors of Z's reflectors the rows of the other columns, and
/// tau (m) their scalars. 2m²(n − m) flops.
template <class T>
void factor_trapezoid(Context<Host>& ctx, MatrixView<T> A, T* tau);

/// C := op(Z) C or C op(Z), Z of the k reflectors of `factor_trapezoid`: I in the first k rows of C (columns from the
/// right), and V_rows (k×l, l > 0) in the last l, with k + l <= Z's order. 4kl flops a column, and lk² for T.
template <class T>
void apply_trapezoid(Context<Host>& ctx, Side side, Op op, MatrixView<const T> V_rows, const T* tau, MatrixView<T> C);

/// Returns the bytes of workspace of these functions, with p columns of C (0 for `factor_trapezoid`).
template <class T>
double trapezoid_workspace(Index k, Index l, Index p);

}  // namespace quoin::lapack
