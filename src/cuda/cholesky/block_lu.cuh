#pragma once

// A = L U of an 8×8 block by one warp, without pivoting: lane 8r + j holds the entries (r, j) and (r + 4, j). Bound by
// latency: eight times an exchange, a reciprocal, a product and a sum, 200 cycles in all on an H100.

#include "cuda/arch/sm70_approximate.cuh"

namespace quoin::cuda {

/// In place: L strictly below the diagonal, U on and above it. Returns pivot i in lane i.
__device__ __forceinline__ double factor_block_lu(double (&a)[2]) {
    const int lane = threadIdx.x % 32, r = lane / 8, j = lane % 8;
    double pivot_of_lane = 1;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const double pivot = __shfl_sync(~0u, a[i / 4], i % 4 * 8 + i), u = __shfl_sync(~0u, a[i / 4], i % 4 * 8 + j);
        const double reciprocal = short_reciprocal(pivot);
        if (lane == i) pivot_of_lane = pivot;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = r + 4 * h;
            const double l = __shfl_sync(~0u, a[h], r * 8 + i) * reciprocal;
            if (row > i && j > i) a[h] -= l * u;
            if (row > i && j == i) a[h] = l;
        }
    }
    return pivot_of_lane;
}

/// Factors A − S = L U, s_i = −sgn of the pivot, and puts (A − S)⁻¹ in place of A (Gauss and Jordan). L is strictly
/// lower, with zeros elsewhere. U is on and above the diagonal of L⁻¹. Returns s_i in lane i.
__device__ __forceinline__ double invert_signed_block(double (&a)[2], double (*L)[8], double (*inverse_and_upper)[8]) {
    const int lane = threadIdx.x % 32, r = lane / 8, j = lane % 8;
    double sign = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const double q = __shfl_sync(~0u, a[i / 4], i % 4 * 8 + i), one = copysign(1.0, q), pivot = q + one;
        double u = __shfl_sync(~0u, a[i / 4], i % 4 * 8 + j);
        const double reciprocal = short_reciprocal(pivot);
        if (lane == i) sign = -one;
        // row i as it is now: L⁻¹(i, :) before the diagonal, U(i, :) from it on
        if (r == i % 4) inverse_and_upper[i][j] = j == i ? pivot : u;
        u = j == i ? 1.0 : u;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = r + 4 * h;
            const double below = __shfl_sync(~0u, a[h], r * 8 + i) * reciprocal;
            if (j == i) L[row][i] = row > i ? below : 0.0;
            a[h] = (row == i || j == i ? 0.0 : a[h]) - (row == i ? -reciprocal : below) * u;
        }
    }
    return sign;
}

}  // namespace quoin::cuda
