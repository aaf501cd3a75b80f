#pragma once

// Reciprocals where a chain of them is what a kernel waits for.

namespace quoin::cuda {

/// 1/x of a normal x to an ulp or two, from an approximation to 20 bits, without a branch for other operands.
__device__ __forceinline__ double reciprocal_of(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    // 1/x = y/(1 − e) = y (1 + e + e² + …)
    const double e = fma(-x, y, 1.0);
    return fma(fma(e, e, e), y, y);
}
__device__ __forceinline__ float reciprocal_of(float x) { return __frcp_rn(x); }

}  // namespace quoin::cuda
