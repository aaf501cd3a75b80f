#pragma once

#include <span>

#include "quoin/qr.hpp"

namespace quoin {

/// A primitive, one of the small dense steps: A = U diag(s) Vᵀ for an n×n A, which is lost.
///
/// U and Vt are n×n, or have null data: then only s is computed. Divide and conquer (LAPACK's gesdd), or QR iteration
/// (gesvd) where that does not converge; sequential, so that the bits depend on no number of threads. About 22n³ flops
/// with vectors, 8n³/3 without. Throws NumericalBreakdown if QR iteration does not converge either, or A holds NaN.
template <class T>
void small_svd(Context<Host>& ctx, MatrixView<T, Host> A, std::span<T> s, MatrixView<T, Host> U,
               MatrixView<T, Host> Vt);

}  // namespace quoin
