#pragma once

// A number of f32 in numbers of 16 bits for the tensor cores: rounded once, s x = f16(s x) + δ, or as a sum of two of
// f16 (Ootomo and Yokota 2022): s x = hi + lo + δ with hi = f16(s x), lo = f16(s x − hi), |δ| <= 2⁻²³|s x| + 2⁻²⁵, and
// for x = hi + lo, y = hi' + lo'
//
//     x y ≈ lo hi' + hi lo' + hi hi'        (lo lo' is below 2⁻²² |x y|)

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// Scaled by 2^halves_exponent, entries of magnitude up to 2 stay far from f16's largest 2¹⁶, and entries of 2⁻²⁰ keep
/// their bits.
constexpr int halves_exponent = 14;

template <class H>
__device__ __forceinline__ H round_to(float x) {
    if constexpr (std::is_same_v<H, __half>) {
        return __float2half_rn(x);
    } else {
        return __float2bfloat16_rn(x);
    }
}

/// s x in its slots.
template <class H, int slots>
struct Halves {
    H hi, lo;
    __device__ __forceinline__ explicit Halves(float x) : hi(round_to<H>(x)), lo(round_to<H>(0.0f)) {
        if constexpr (slots == 3) lo = __float2half_rn(x - __half2float(hi));
    }
};

/// Two neighbours, as the tensor cores take them.
__device__ __forceinline__ void halves_of_pair(float x, float y, unsigned& hi, unsigned& lo) {
    const __half2 h = __floats2half2_rn(x, y);
    const float2 back = __half22float2(h);
    const __half2 l = __floats2half2_rn(x - back.x, y - back.y);
    hi = reinterpret_cast<const unsigned&>(h);
    lo = reinterpret_cast<const unsigned&>(l);
}

/// s = 2^halves_exponent, or for a `largest` magnitude what brings that between 2^halves_exponent and twice it.
__device__ __forceinline__ int exponent_of_scale(const unsigned* largest) {
    if (!largest) return halves_exponent;
    const float top = __uint_as_float(*largest);
    // 2⁻¹⁰⁰ and less are zero to f32's products with anything below 2¹⁰⁰
    return halves_exponent - (top > 0 && top < INFINITY ? max(ilogbf(top), -100) : 0);
}

/// A's unit lower triangle alone, where `unit_lower`: ones on the diagonal, zeros above.
template <bool unit_lower>
__device__ __forceinline__ float entry_of(const MatrixView<const float, Cuda>& A, Index i, Index j) {
    if (i >= A.rows || j >= A.cols) return 0.0f;
    if (unit_lower && i <= j) return i == j ? 1.0f : 0.0f;
    return A.data[i + j * A.ld];
}

}  // namespace quoin::cuda
