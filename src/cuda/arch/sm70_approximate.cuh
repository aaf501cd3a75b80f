#pragma once

// 1/x and 1/√x from the hardware's approximations, for numbers whose squares are far from the ends of the range: no
// branch for others.

namespace quoin::cuda {

/// Returns 1/√x to the last bit or two.
__device__ __forceinline__ float reciprocal_root(float x) {
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ double reciprocal_root(double x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
    for (int i = 0; i < 2; ++i) y = fma(y * 0.5, fma(-x * y, y, 1.0), y);
    return y;
}

/// Returns 1/x to the last bit or two.
__device__ __forceinline__ float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return fma(y, fma(-x, y, 1.0f), y);
}
__device__ __forceinline__ double reciprocal(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
    for (int i = 0; i < 3; ++i) y = fma(y, fma(-x, y, 1.0), y);
    return y;
}

/// Returns 1/x of a normal x to an ulp or two, in fewer dependent steps than `reciprocal`.
__device__ __forceinline__ double short_reciprocal(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    // 1/x = y/(1 − e) = y (1 + e + e² + …)
    const double e = fma(-x, y, 1.0);
    return fma(fma(e, e, e), y, y);
}

}  // namespace quoin::cuda
