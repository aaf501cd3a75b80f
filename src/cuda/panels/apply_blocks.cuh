#pragma once

// C (m×p) := op(H₀ H₁ …) C for the blocks H_i = I − V_i T_ii V_iᵀ of 32 reflectors of a panel (gemqrt with block size
// 32): one launch, one cluster a strip of 16 columns of C (block_of_reflectors.cuh).
//
// While a block has at most one chunk of rows, its part of C stays in shared memory from the first H_i to the last.
// 4mkp flops, V read once a strip; two blocks a multiprocessor. Bound by shared memory, and by the latency of the
// cluster's barrier, one a block of reflectors.

#include "cuda/panels/block_of_reflectors.cuh"
#include "quoin/qr.hpp"

namespace quoin::cuda {

template <class T>
inline constexpr int strip_chunk = std::is_same_v<T, float> ? 512 : 192;

template <class T>
using ApplyShared = StripShared<T, strip_chunk<T>>;

template <class T>
struct StripOperands {
    Index m;
    Index k;
    const T* V;
    Index ldv;
    const T* Tf;
    Index ldt;
    T* C;
    Index ldc;
    Index p;
    Index h;  // rows a block of the cluster
};

template <class T, bool transpose>
__global__ void __launch_bounds__(strip_threads, 2) apply_strip_kernel(StripOperands<T> q) {
    const auto cluster = cooperative_groups::this_cluster();
    constexpr int chunk = strip_chunk<T>;
    extern __shared__ __align__(16) unsigned char strip_memory[];
    auto& shared = *reinterpret_cast<ApplyShared<T>*>(strip_memory);
    const StripRows<chunk> rows(0, q.m, q.h, static_cast<int>(cluster.block_rank()));
    const Index first_col = Index(blockIdx.x / cluster.num_blocks()) * strip_width;
    const int cols = static_cast<int>(min(Index(strip_width), q.p - first_col)), chunks = rows.chunks();
    const bool stays = chunks <= 1;
    T* const C = q.C + first_col * q.ldc;
    const Index reflector_blocks = (q.k + t_width - 1) / t_width;

    for (Index step = 0; step < reflector_blocks; ++step) {
        const Index diagonal = (transpose ? step : reflector_blocks - 1 - step) * t_width;
        const int k = static_cast<int>(min(Index(t_width), q.k - diagonal));
        const auto load = [&](int at) {
            __syncthreads();
            stage_chunk<chunk>(q.V + diagonal * q.ldv, q.ldv, rows.begin(at), rows.size(at), k, true, diagonal,
                               shared.V);
            if (!stays || step == 0) {
                stage_chunk<chunk>(C, q.ldc, rows.begin(at), rows.size(at), cols, false, Index(0), shared.C);
            }
            __syncthreads();
        };
        // W = V_iᵀC
        StripProducts<T> products;
        for (int at = 0; at < chunks; ++at) {
            load(at);
            products.add(shared, rows.size(at));
        }
        for (int at = threadIdx.x; at < t_width * t_width; at += strip_threads) {
            const int i = at % t_width, j = at / t_width;
            shared.Tk[j][i] = i <= j && j < k ? q.Tf[diagonal + i + (diagonal + j) * q.ldt] : T(0);
        }
        products.reduce(shared);
        multiply_t<transpose>(shared);
        // C −= V_i W, the last chunk first: it is still there
        for (int at = chunks - 1; at >= 0; --at) {
            if (at < chunks - 1) load(at);
            subtract_product(shared, rows.size(at), [&](int i, const T(&c)[strip_width]) {
#pragma unroll
                for (int j = 0; j < strip_width; ++j) {
                    if (stays && step < reflector_blocks - 1) {
                        shared.C[j][i] = c[j];
                    } else if (j < cols) {
                        C[rows.begin(at) + i + j * q.ldc] = c[j];
                    }
                }
            });
        }
        cluster.barrier_wait();
    }
}

}  // namespace quoin::cuda
