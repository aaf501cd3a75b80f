#pragma once

// T of k <= 32 reflectors from their products and τ (larft), by one warp, lane i its row i:
//
//     T(0:j, j) = −τ_j T(0:j, 0:j) (VᵀV)(0:j, j),  T(j, j) = τ_j
//
// 16·31 multiply-adds a lane in chains of eight, T in shared memory: bound by latency, about 2 µs.

#include "cuda/kernel_choice.hpp"

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

}  // namespace quoin::cuda
