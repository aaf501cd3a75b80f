#pragma once

// Hints to the compiler about registers, and single moves that it would make otherwise. Any GPU runs them.

namespace quoin::cuda {

/// Returns x, which the compiler keeps. Where registers are few it would ask the hardware for a thread's number again,
/// which takes longer than the products around it.
__device__ __forceinline__ int kept(int x) {
    asm("mov.b32 %0, %0;" : "+r"(x));
    return x;
}

/// Returns x in f64, converted where it is used. Kept from one use to the next it would take two more registers.
__device__ __forceinline__ double widened(double x) { return x; }
__device__ __forceinline__ double widened(float x) {
    double wide;
    asm volatile("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(x));
    return wide;
}

/// Has what was read of shared memory read again, and not kept in registers.
__device__ __forceinline__ void forget_memory() { asm volatile("" ::: "memory"); }

/// Has p and q advanced as they are, and no address of each column kept in registers.
template <class P, class Q>
__device__ __forceinline__ void keep_as_pointers(P*& p, Q*& q) {
    asm volatile("" : "+l"(p), "+l"(q));
}

/// p[0], p[1] := x, y in one store. The compiler would make two of it if x and y come from far apart.
__device__ __forceinline__ void store_together(float* p, float x, float y) {
    asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(p), "f"(x), "f"(y) : "memory");
}

}  // namespace quoin::cuda
