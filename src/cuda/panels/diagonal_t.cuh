#pragma once

// T's diagonal blocks of 32 columns from G = VᵀV and τ by the recurrence of larft, one warp a block, lane i its row i:
//
//     T(0:j, j) = −τ_j T(0:j, 0:j) (VᵀV)(0:j, j),  T(j, j) = τ_j
//
// 16·31 multiply-adds a lane in chains of eight, T in shared memory: bound by latency, about 2 µs.

#include "cuda/kernel_choice.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// products[j][l] = v_lᵀv_j for l < j, and finite for the l that fill up a multiple of eight. T k×k, zeros below its
/// diagonal.
template <class T>
__device__ inline void t_recurrence(int k, const T (&products)[t_width][t_width + 1], const T* taus,
                                    T (&Tk)[t_width][t_width + 1], T* Tf, Index ldt) {
    constexpr int step = 8;
    const int i = threadIdx.x % 32;
    for (int j = 0; j < t_width; ++j) Tk[i][j] = 0;
    for (int j = 0; j < k; ++j) {
        T sum[step] = {};
        for (int l = 0; l < j; l += step) {
#pragma unroll
            for (int e = 0; e < step; ++e) sum[e] += Tk[i][l + e] * products[j][l + e];
        }
        const T total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
        const T t_ij = i < j ? -taus[j] * total : i == j ? taus[j] : T(0);
        Tk[i][j] = t_ij;
        if (i < k) Tf[i + j * ldt] = t_ij;
    }
}

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
