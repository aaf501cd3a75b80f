#pragma once

#include "quoin/cuda.hpp"

namespace quoin::bench {

/// ‖I − QᵀQ‖_F by DGEMM on the device, Q m×k. A k×k matrix of double and, for float, Q in double. Waits.
template <class T>
double orthogonality(Context<Cuda>& ctx, const Matrix<T, Cuda>& Q);

/// ‖A − QR‖_F / ‖A‖_F in the same way, Q m×k, R k×n; an m×n matrix of double more. Waits.
template <class T>
double residual(Context<Cuda>& ctx, const Matrix<T, Cuda>& A, const Matrix<T, Cuda>& Q, const Matrix<T, Cuda>& R);

/// R (k×n upper trapezoidal) of what geqrf left in V_R. Enqueued.
template <class T>
Matrix<T, Cuda> upper_trapezoid(Context<Cuda>& ctx, const Matrix<T, Cuda>& V_R);

}  // namespace quoin::bench
