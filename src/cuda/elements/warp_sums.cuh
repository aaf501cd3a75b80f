#pragma once

// Sums and maxima: of two numbers, and over a warp, in every lane; every lane calls those.

#include <cuda_runtime.h>

namespace quoin::cuda {

struct Plus {
    template <class T>
    __device__ __forceinline__ T operator()(T x, T y) const {
        return x + y;
    }
};
struct Larger {
    template <class T>
    __device__ __forceinline__ T operator()(T x, T y) const {
        return max(x, y);
    }
};

template <class T>
__device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}
template <class T>
__device__ __forceinline__ T warp_max(T x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x = max(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

}  // namespace quoin::cuda
