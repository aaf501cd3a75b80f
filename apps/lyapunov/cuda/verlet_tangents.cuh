#pragma once

// Steps of velocity Verlet's derivative for the columns of X = [δq; δp], 2dN×p, all of them in one launch:
//
//   δp := δp + ½h DF(q_s) δq,   δq := δq + h δp,   δp := δp + ½h DF(q_{s+1}) δq,   s = 0, 1, …
//
// with DF as lists of couplings (verlet_state.cuh).
//
//              columns of X
//            ┌──┬──┬──┬──┐     a block: 16 bytes of each row, so 2 columns in f64 and 4 in f32, for every step;
//   δq       │  │  │  │  │     a thread: particles t, t + threads, …, their dN rows of each column of the block.
//            ├──┼──┼──┼──┤     A coupling is read once for all columns of a block, by neighbouring threads from
//   δp       │  │  │  │  │     neighbouring words.
//            └──┴──┴──┴──┘
//
// The block's columns come into shared memory, 32dN bytes (96 KB for 1000 particles in space: two blocks a
// multiprocessor), and go back after the last step: X is read once and written once, 2·2dN·p words. If they do not fit,
// the block works directly on its own columns of X, through the caches. A row of δq is written only between two
// barriers, after all threads have read it. Multiply-adds are fused explicitly, so that each rounds equally at every
// place of a step in the loop. Any ld. 9d flops a coupling and column; bound by the latency of the couplings, which the
// cache holds for all blocks.

#include <algorithm>
#include <cmath>

#include "cuda/runtime/launch.hpp"
#include "lyapunov/cuda/verlet_state.cuh"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

constexpr int verlet_threads = 512;
template <class T>
constexpr int verlet_cols = 16 / int(sizeof(T));

template <class T, int D>
__global__ void __launch_bounds__(verlet_threads, 2)
    verlet_tangents_kernel(Couplings<T, D> first, int steps, T h, MatrixView<T, Cuda> X, bool in_shared) {
    constexpr int W = verlet_cols<T>;
    extern __shared__ __align__(16) unsigned char shared[];
    const Index N = first.N, m = D * N, first_col = Index(blockIdx.x) * W;
    const int w = static_cast<int>(min(Index(W), X.cols - first_col));
    T* const columns = X.data + first_col * X.ld;
    T* const tile = in_shared ? reinterpret_cast<T*>(shared) : columns;
    const Index ld = in_shared ? 2 * m : X.ld;
    if (in_shared) {
        for (int c = 0; c < w; ++c) {
            for (Index e = threadIdx.x; e < 2 * m; e += blockDim.x) tile[c * ld + e] = columns[c * X.ld + e];
        }
    }
    __syncthreads();

    for (int s = 0; s <= steps; ++s) {
        const Couplings<T, D> couplings = first.behind(s);
        const Index entries = couplings.entries();
        for (Index i = threadIdx.x; i < N; i += blockDim.x) {
            T own[W][D], F[W][D] = {};
#pragma unroll
            for (int c = 0; c < W; ++c) {
                for (int a = 0; a < D; ++a) own[c][a] = c < w ? tile[c * ld + D * i + a] : T(0);
            }
            const int count = couplings.count[i];
            for (int k = 0; k < count; ++k) {
                const T* const values = couplings.values + k * N + i;
                const Index j = couplings.partner[k * N + i];
                const T alpha = values[0];
                if constexpr (D == 1) {
#pragma unroll
                    for (int c = 0; c < W; ++c) {
                        if (c >= w) continue;
                        F[c][0] = std::fma(alpha, own[c][0] - (j < N ? tile[c * ld + j] : T(0)), F[c][0]);
                    }
                } else {
                    const T beta = values[entries];
                    T r[D];
#pragma unroll
                    for (int a = 0; a < D; ++a) r[a] = values[(2 + a) * entries];
#pragma unroll
                    for (int c = 0; c < W; ++c) {
                        if (c >= w) continue;
                        // δF += αδ + β r rᵀδ, δ = δ_i − δ_j
                        T delta[D], dot = 0;
#pragma unroll
                        for (int a = 0; a < D; ++a) {
                            delta[a] = own[c][a] - tile[c * ld + D * j + a];
                            dot = std::fma(r[a], delta[a], dot);
                        }
                        dot *= beta;
#pragma unroll
                        for (int a = 0; a < D; ++a) {
                            F[c][a] = std::fma(alpha, delta[a], std::fma(dot, r[a], F[c][a]));
                        }
                    }
                }
            }
#pragma unroll
            for (int c = 0; c < W; ++c) {
                if (c >= w) continue;
                for (int a = 0; a < D; ++a) {
                    T* const p = tile + c * ld + m + D * i + a;
                    T value = *p;
                    if (s > 0) value = std::fma(h / 2, F[c][a], value);
                    if (s < steps) value = std::fma(h / 2, F[c][a], value);
                    *p = value;
                }
            }
        }
        __syncthreads();
        if (s == steps) break;
        for (int c = 0; c < w; ++c) {
            for (Index e = threadIdx.x; e < m; e += blockDim.x) {
                tile[c * ld + e] = std::fma(h, tile[c * ld + m + e], tile[c * ld + e]);
            }
        }
        __syncthreads();
    }

    if (!in_shared) return;
    for (int c = 0; c < w; ++c) {
        for (Index e = threadIdx.x; e < 2 * m; e += blockDim.x) columns[c * X.ld + e] = tile[c * ld + e];
    }
}

/// Advances X, which has columns, by `steps` steps, with `first` and the next `steps` lists. `shared_bytes`: the limit
/// of a block.
template <class T, int D>
void verlet_tangents(const Couplings<T, D>& first, int steps, T h, MatrixView<T, Cuda> X, std::size_t shared_bytes,
                     cudaStream_t stream) {
    constexpr int W = verlet_cols<T>;
    const std::size_t bytes = static_cast<std::size_t>(W * 2 * D * first.N) * sizeof(T);
    const bool in_shared = bytes <= shared_bytes;
    const auto threads = static_cast<unsigned>(std::min<Index>(verlet_threads, (first.N + 31) / 32 * 32));
    launch(stream, verlet_tangents_kernel<T, D>,
           {static_cast<unsigned>((X.cols + W - 1) / W), threads, in_shared ? bytes : 0}, first, steps, h, X,
           in_shared);
}

}  // namespace quoin::cuda
