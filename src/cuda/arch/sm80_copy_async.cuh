#pragma once

// Copies from device to shared memory that pass by the registers (cp.async).

#include "quoin/matrix.hpp"

namespace quoin::cuda {

/// 16 bytes, `valid_bytes` of them from from + from_offset to to + to_offset, in bytes, and zeros for the others.
template <int to_offset = 0, int from_offset = 0, class T>
__device__ __forceinline__ void copy_async_at(T* to, const T* from, int valid_bytes) {
    asm volatile("cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16, %2;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(valid_bytes), "n"(to_offset), "n"(from_offset)
                 : "memory");
}
/// `bytes` (4, 8 or 16, aligned to it) at `from`, of whose elements `valid` exist (any number); zeros for the others.
template <int bytes, class T>
__device__ __forceinline__ void copy_async(T* to, const T* from, Index valid) {
    constexpr int width = bytes / int(sizeof(T));
    const int valid_bytes = valid >= width ? bytes : valid > 0 ? static_cast<int>(valid) * int(sizeof(T)) : 0;
    if constexpr (bytes == 16) {
        copy_async_at(to, from, valid_bytes);
    } else {
        asm volatile(
            "cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
            "l"(from), "n"(bytes), "r"(valid_bytes)
            : "memory");
    }
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most `pending` of this thread's groups are under way.
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Whether columns of A can be read 16 bytes at a time.
template <class T>
__host__ __device__ __forceinline__ bool aligned_16(const T* A, Index lda) {
    return reinterpret_cast<unsigned long long>(A) % 16 == 0 && lda * Index(sizeof(T)) % 16 == 0;
}

}  // namespace quoin::cuda
