#pragma once

// Row-major matrices on their way to shared memory, where they are column-major.

#include "cuda/arch/sm80_copy_async.cuh"
#include "quoin/matrix.hpp"

namespace quoin::cuda {

/// Copies rows×n of a row-major A to a column-major `to`, by `threads` threads, an element at a time. `valid` of the
/// rows exist; the others become zeros. A warp copies 32 bytes of each of `height` rows at a time. Its lanes write to
/// different banks if `ld` is 4 above a multiple of 16.
template <int threads, int rows, class T>
__device__ __forceinline__ void copy_rows_async(T* to, int ld, const T* A, Index lda, int n, Index valid) {
    constexpr int width = 32 / int(sizeof(T)), height = 32 / width, bands = rows / height;
    const int lane = threadIdx.x % 32;
    for (int t = threadIdx.x % threads / 32; t < bands * ((n + width - 1) / width); t += threads / 32) {
        const int i = t % bands * height + lane / width, j = t / bands * width + lane % width;
        if (j < n) copy_async<sizeof(T)>(to + j * ld + i, A + i * lda + j, valid - i);
    }
}

}  // namespace quoin::cuda
