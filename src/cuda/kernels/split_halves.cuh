#pragma once

// A matrix of f32 as sums of two of f16, laid out for one product where three are meant (Ootomo and Yokota 2022):
// s x = hi + lo + δ with hi = f16(s x), lo = f16(s x − hi), |δ| <= 2⁻²³|s x| + 2⁻²⁵, and for x = hi + lo, y = hi' + lo'
//
//     x y ≈ lo hi' + hi lo' + hi hi'        (lo lo' is below 2⁻²² |x y|)
//
//   split_parts   runs of h rows of A (m×n), each three times, one below the other: lo in one of them and hi in the others.
//                 A product of depth 3h with the same run of another matrix, whose lo is elsewhere, adds the three terms.
//
//                 ┌────┐ h       ┌────┐ slot 0     one thread two rows of a column; h is even. Beyond A's rows zeros
//                 ├────┤    →    ├────┤ slot 1     up to the end of the run. 1 read of f32, 1.5 times as many bytes
//                 │    │         ├────┤ slot 2     written. Bound by memory.
//                 └────┘         ├────┤ slot 0 …
//
//   split_sides   the same side by side: hi or lo of A's columns in column s n + j of slot s.
//   largest_bits  the bits of max |a_ij|, which has to be 0 before; threads stride, a warp's maximum goes there by atomicMax.

#include <cuda_fp16.h>

#include "cuda/elementwise.cuh"

namespace quoin::cuda {

/// Which of the three slots holds lo.
enum class LowSlot { First, Second };

/// Scaled by 2^split_exponent, entries of magnitude up to 2 stay far from f16's largest 2¹⁶, and those of 2⁻²⁰ keep their bits.
constexpr int split_exponent = 14;

__device__ __forceinline__ void split(float x, __half& hi, __half& lo) {
    hi = __float2half_rn(x);
    lo = __float2half_rn(x - __half2float(hi));
}

/// s = 2^split_exponent, or for a `largest` magnitude what brings that between 2^split_exponent and twice it.
__device__ __forceinline__ int exponent_of_scale(const unsigned* largest) {
    if (!largest) return split_exponent;
    const float top = __uint_as_float(*largest);
    // below 2⁻¹⁰⁰ of a column's norm nothing matters
    return split_exponent - (top > 0 && top < INFINITY ? max(ilogbf(top), -100) : 0);
}

/// A's unit lower triangle alone, where `unit_lower`: ones on the diagonal, zeros above.
template <bool unit_lower>
__global__ void __launch_bounds__(element_threads)
    split_parts(MatrixView<const float, Cuda> A, Index h, Index padded_rows, LowSlot low, const unsigned* largest,
                __half* out) {
    const float scale = scalbnf(1.0f, exponent_of_scale(largest));
    for (Index j = blockIdx.y; j < A.cols; j += gridDim.y) {
        for (Index i = 2 * (Index(blockIdx.x) * element_threads + threadIdx.x); i < padded_rows;
             i += 2 * Index(gridDim.x) * element_threads) {
            __half hi[2], lo[2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float x = i + e < A.rows ? A.data[i + e + j * A.ld] : 0.0f;
                if (unit_lower && i + e <= j) x = i + e == j ? 1.0f : 0.0f;
                split(x * scale, hi[e], lo[e]);
            }
            const __half2 high = __halves2half2(hi[0], hi[1]), rest = __halves2half2(lo[0], lo[1]);
            __half* const at = out + j * 3 * padded_rows + i / h * 3 * h + i % h;
#pragma unroll
            for (int s = 0; s < 3; ++s) {
                *reinterpret_cast<__half2*>(at + s * h) = static_cast<int>(low) == s ? rest : high;
            }
        }
    }
}

template <bool unit_lower>
__global__ void __launch_bounds__(element_threads)
    split_sides(MatrixView<const float, Cuda> A, LowSlot low, __half* out, Index ldo) {
    const float scale = scalbnf(1.0f, split_exponent);
    for (Index j = blockIdx.y; j < A.cols; j += gridDim.y) {
        for (Index i = Index(blockIdx.x) * element_threads + threadIdx.x; i < A.rows;
             i += Index(gridDim.x) * element_threads) {
            float x = A.data[i + j * A.ld];
            if (unit_lower && i <= j) x = i == j ? 1.0f : 0.0f;
            __half hi, lo;
            split(x * scale, hi, lo);
#pragma unroll
            for (int s = 0; s < 3; ++s) out[i + (s * A.cols + j) * ldo] = static_cast<int>(low) == s ? lo : hi;
        }
    }
}

__global__ void __launch_bounds__(element_threads) largest_bits(Index count, const float* x, unsigned* largest) {
    unsigned top = 0;
    for (Index i = Index(blockIdx.x) * element_threads + threadIdx.x; i < count;
         i += Index(gridDim.x) * element_threads) {
        top = max(top, __float_as_uint(x[i]) & 0x7fffffffu);
    }
    top = __reduce_max_sync(~0u, top);
    if (threadIdx.x % 32 == 0) atomicMax(largest, top);
}

}  // namespace quoin::cuda
