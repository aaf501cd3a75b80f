#pragma once

// T's diagonal blocks of 32 columns from G = VᵀV and τ by the recurrence of larft (t_recurrence.cuh), one warp a block.

#include "cuda/panels/t_recurrence.cuh"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

template <class T>
__global__ void __launch_bounds__(32)
    diagonal_t_kernel(MatrixView<const T, Cuda> G, MatrixView<const T, Cuda> tau, MatrixView<T, Cuda> Tf) {
    __shared__ T products[t_width][t_width + 1], Tk[t_width][t_width + 1], taus[t_width];
    const Index first = Index(blockIdx.x) * t_width;
    const int k = static_cast<int>(min(Index(t_width), G.cols - first)), i = threadIdx.x;
    for (int j = 0; j < t_width; ++j) products[j][i] = i < j && j < k ? G.data[first + i + (first + j) * G.ld] : T(0);
    taus[i] = i < k ? tau.data[first + i] : T(0);
    __syncwarp();
    t_recurrence(k, products, taus, Tk, Tf.data + first + first * Tf.ld, Tf.ld);
}

}  // namespace quoin::cuda
