#pragma once

// Barriers of some of a block's warps, and counters that publish a block's progress to the others.

namespace quoin::cuda {

/// Waits at the block's barrier `barrier`, 1 to 15, for `warps` of its warps.
template <int barrier, int warps>
__device__ __forceinline__ void wait_for_warps() {
    asm volatile("bar.sync %0, %1;" ::"n"(barrier), "n"(32 * warps) : "memory");
}
template <int barrier>
__device__ __forceinline__ void wait_for_warps(int warps) {
    asm volatile("bar.sync %0, %1;" ::"n"(barrier), "r"(32 * warps) : "memory");
}

/// Returns *p. What another block wrote before `add_released` made it so is seen after it.
__device__ __forceinline__ int load_acquired(const int* p) {
    int x;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}
/// *p += x, after what this thread has written and seen written.
__device__ __forceinline__ void add_released(int* p, int x) {
    asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

}  // namespace quoin::cuda
