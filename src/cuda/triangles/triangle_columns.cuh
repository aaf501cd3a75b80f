#pragma once

// Columns of a triangle, scaled and summed: one warp a column, its sums in a fixed tree. n² reads, bound by latency.

#include "cuda/elements/warp_sums.cuh"
#include "primitives.hpp"

namespace quoin::cuda {

/// Column norms as tops·lengths, the largest entry and the norm over it: neither can overflow. NaN where an
/// entry is not finite.
struct ColumnScales {
    double* tops;
    double* lengths;
};

/// W := R D of an upper triangular R, where D scales its columns to unit norm; zeros below. The norms, and W's
/// diagonal, go where there is a place for them.
template <class T>
__global__ void __launch_bounds__(32) unit_columns_kernel(MatrixView<const T, Cuda> R, MatrixView<double, Cuda> W,
                                                          ColumnScales scales, double* diagonal) {
    const Index j = blockIdx.x;
    const T* r = R.data + j * R.ld;
    double top = 0, square = 0;
    bool finite = true;
    for (Index i = threadIdx.x; i <= j; i += 32) {
        const double x = fabs(static_cast<double>(r[i]));
        finite = finite && isfinite(x);
        top = fmax(top, x);
    }
    top = warp_max(top);
    if (!__all_sync(~0u, finite)) top = NAN;
    // ‖r‖ = top ‖r / top‖
    for (Index i = threadIdx.x; i <= j; i += 32) {
        const double x = static_cast<double>(r[i]) / top;
        square += x * x;
    }
    const double length = sqrt(warp_sum(square));
    for (Index i = threadIdx.x; i < R.rows; i += 32) {
        const double w = i <= j ? static_cast<double>(r[i]) / top / length : 0.0;
        W.data[i + j * W.ld] = w;
        if (i == j && diagonal) diagonal[j] = w;
    }
    if (threadIdx.x == 0 && scales.tops) {
        scales.tops[j] = top;
        scales.lengths[j] = length;
    }
}

/// sums[j] := Σ_i |a_ij|, or Σ_i a_ij² where `squared`.
template <bool squared, class T>
__global__ void __launch_bounds__(32) column_sums_kernel(MatrixView<const T, Cuda> A, double* sums) {
    const Index j = blockIdx.x;
    double sum = 0;
    for (Index i = threadIdx.x; i < A.rows; i += 32) {
        const double a = static_cast<double>(A.data[i + j * A.ld]);
        sum += squared ? a * a : fabs(a);
    }
    sum = warp_sum(sum);
    if (threadIdx.x == 0) sums[j] = sum;
}

}  // namespace quoin::cuda
