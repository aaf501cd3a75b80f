#pragma once

// Householder reconstruction: V and T of an orthonormal Q.

#include <cmath>

#include "algorithms/one_matrix/cholesky_qr.hpp"
#include "algorithms/shared/side_work.hpp"

namespace quoin {

/// Returns the largest ‖(LU)⁻¹‖ of n columns that is accurate. V and T differ from reflectors' by up to this norm times
/// the departure of QᵀQ from I. The norm is about √n for almost every Q, but may grow as 2ⁿ. Beyond a multiple of √n
/// the reflectors are computed, not reconstructed.
inline double max_inverse_norm(Index n) { return 8 * std::sqrt(static_cast<double>(n)); }

/// Factors A (m×n, m >= n) by CholeskyQR and reconstruction to V, Tf and R (n×n) in LAPACK's format, all under one
/// certificate. If the state is not Certified, A is as that state says, and Tf is not final. Waits.
template <class T, class D>
CholeskyPasses<T, D> factor_by_cholesky(Context<D>& ctx, CholeskyChain chain, MatrixView<T, D> A, MatrixView<T, D> Tf,
                                        MatrixView<T, D> R, OverlappedWork& overlapped);

/// Computes V and T of an orthonormal Q in A: by reconstruction, or by Householder QR of Q if that would be inaccurate.
/// R has n or more columns. Waits.
template <class T, class D>
void reconstruct_householder(Context<D>& ctx, MatrixView<T, D> A, MatrixView<T, D> R, MatrixView<T, D> Tf);

}  // namespace quoin
