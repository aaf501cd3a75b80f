#pragma once

// Random matrices for measurements on a GPU.

#include <cuda_runtime.h>

#include "quoin/cuda.hpp"

namespace quoin {

/// Standard normal from a hash of the entry's place (splitmix64, Box and Muller).
__device__ inline double noise(Index at) {
    const auto hash = [](unsigned long long x) {
        x += 0x9E3779B97F4A7C15ull;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        return ((x ^ (x >> 31)) >> 11) * 0x1p-53;
    };
    return sqrt(-2 * log(1 - hash(2 * at))) * cospi(2 * hash(2 * at + 1));
}

template <class T>
__global__ void noise_kernel(Index first, MatrixView<T, Cuda> A) {
    const Index count = A.rows * A.cols;
    for (Index e = blockIdx.x * Index(blockDim.x) + threadIdx.x; e < count; e += Index(gridDim.x) * blockDim.x) {
        A.data[A.ld == A.rows ? e : e % A.rows + e / A.rows * A.ld] = static_cast<T>(noise(first + e));
    }
}
/// Entries `first`, `first` + 1, … of the noise, column by column.
template <class T>
void fill_with_noise(Index first, MatrixView<T, Cuda> A, cudaStream_t stream) {
    noise_kernel<<<2048, 256, 0, stream>>>(first, A);
}

}  // namespace quoin
