#pragma once

#include <functional>

#include "quoin/cuda.hpp"

namespace quoin::bench {

// By DGEMM on the device, as many columns at a time as make 2 GiB of double: beside the operands up to two such blocks, for float
// half a one more, and a square of double as wide.

/// block := A(:, cols), contiguous: of a matrix that need not lie in memory.
template <class T>
using ColumnSource = std::function<void(Range cols, MatrixView<T, Cuda> block)>;
/// Of a matrix that does.
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
