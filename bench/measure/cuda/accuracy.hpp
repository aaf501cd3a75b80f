#pragma once

#include <functional>

#include "quoin/cuda.hpp"

namespace quoin::bench {

// Errors of Q and R by DGEMM on the device, in blocks of columns of 2 GiB of double. Needs up to two such blocks in
// addition to the operands, for float half of one more, and a square of double of that width.

/// block := A(:, cols), contiguous: of a matrix that need not lie in memory.
template <class T>
using ColumnSource = std::function<void(Range cols, MatrixView<T, Cuda> block)>;
/// Returns the columns of a matrix in memory.
template <class T>
ColumnSource<T> columns_of(Context<Cuda>& ctx, const Matrix<T, Cuda>& A) {
    return [&](Range cols, MatrixView<T, Cuda> block) { copy<T>(ctx, A.view().col_block(cols), block); };
}

/// ‖I − QᵀQ‖_F, Q m×k. mk² flops. Waits.
template <class T>
double orthogonality(Context<Cuda>& ctx, const Matrix<T, Cuda>& Q);

/// ‖A − QR‖_F / ‖A‖_F, Q m×k, R k×n. 2mkn flops. Waits.
template <class T>
double residual(Context<Cuda>& ctx, const ColumnSource<T>& A, const Matrix<T, Cuda>& Q, const Matrix<T, Cuda>& R);
template <class T>
double residual(Context<Cuda>& ctx, const Matrix<T, Cuda>& A, const Matrix<T, Cuda>& Q, const Matrix<T, Cuda>& R) {
    return residual<T>(ctx, columns_of(ctx, A), Q, R);
}

/// R (k×n upper trapezoidal) of what geqrf left in V_R. Enqueued.
template <class T>
Matrix<T, Cuda> upper_trapezoid(Context<Cuda>& ctx, const Matrix<T, Cuda>& V_R);

}  // namespace quoin::bench
