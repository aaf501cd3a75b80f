#pragma once

// T (k×k) of a panel's reflectors from G = VᵀV, k > 32 (Schreiber and Van Loan 1989), in blocks of 32 columns: T_ii by the
// recurrence of larft (t_recurrence.cuh) from G and τ, where they are not there yet, and then, for block column j,
//
//     X_j = T_jj,  X_i = −T_ii Σ_{i < l <= j} G_il X_l  for i = j − 1, …, 0,  zeros below
//
//     panel_products  G_ij, i < j (i <= j where asked): one cluster a pair of blocks and 16 columns of V_j (strip.cuh)
//     diagonal_t      one warp a diagonal block
//     join_t          one block of 256 threads for 16 columns of T, thread (i, j) = (t % 32, t / 32) two elements of a 32×16
//                     block; X lives where it is written, in T. 2·32·16·(j − i + 1)·32 flops a step, j steps: bound by
//                     latency, about 1 µs a step

#include "apply_strip.cuh"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// G's upper triangle alone; the last 16 columns of a block may be missing. `h` rows a block of the cluster.
template <class T>
__global__ void __launch_bounds__(strip_threads, 2)
    panel_products(MatrixView<const T, Cuda> V, Index h, bool with_diagonal, MatrixView<T, Cuda> G) {
    const auto cluster = cooperative_groups::this_cluster();
    extern __shared__ __align__(16) unsigned char strip_memory[];
    auto& shared = *reinterpret_cast<ApplyShared<T>*>(strip_memory);
    // the pair's number: pairs (0, j), …, (j, j) follow those of j − 1
    constexpr int halves = t_width / strip_width;
    Index pair = Index(blockIdx.x / cluster.num_blocks()) / halves, j = with_diagonal ? 0 : 1;
    for (; pair >= (with_diagonal ? j + 1 : j); ++j) pair -= with_diagonal ? j + 1 : j;
    const Index i = pair * t_width, first = j * t_width + blockIdx.x / cluster.num_blocks() % halves * strip_width;
    const int k = static_cast<int>(min(Index(t_width), V.cols - i));
    const int cols = static_cast<int>(min(Index(strip_width), V.cols - first));  // none if negative

    constexpr int chunk = strip_chunk<T>;
    const StripRows<chunk> rows(0, V.rows, h, static_cast<int>(cluster.block_rank()));
    StripProducts<T> products;
    for (int at = 0; at < rows.chunks(); ++at) {
        __syncthreads();
        stage_chunk<chunk>(V.data + i * V.ld, V.ld, rows.begin(at), rows.size(at), k, true, i, shared.V);
        stage_chunk<chunk>(V.data + first * V.ld, V.ld, rows.begin(at), rows.size(at), cols, true, first, shared.C);
        __syncthreads();
        products.add(shared, rows.size(at));
    }
    products.reduce(shared);
    if (cluster.block_rank() == 0) {
        for (int at = threadIdx.x; at < t_width * strip_width; at += strip_threads) {
            const int row = at % t_width, col = at / t_width;
            if (row < k && col < cols) G.data[i + row + (first + col) * G.ld] = shared.W[row * strip_width + col];
        }
    }
    cluster.barrier_wait();
}

template <class T>
__global__ void __launch_bounds__(32)
    diagonal_t(MatrixView<const T, Cuda> G, MatrixView<const T, Cuda> tau, MatrixView<T, Cuda> Tf) {
    __shared__ T products[t_width][t_width + 1], Tk[t_width][t_width + 1], taus[t_width];
    const Index first = Index(blockIdx.x) * t_width;
    const int k = static_cast<int>(min(Index(t_width), G.cols - first)), i = threadIdx.x;
    for (int j = 0; j < t_width; ++j) products[j][i] = i < j && j < k ? G.data[first + i + (first + j) * G.ld] : T(0);
    taus[i] = i < k ? tau.data[first + i] : T(0);
    __syncwarp();
    t_recurrence(k, products, taus, Tk, Tf.data + first + first * Tf.ld, Tf.ld);
}

inline constexpr int join_threads = 256, join_cols = 16;

template <class T>
__global__ void __launch_bounds__(join_threads) join_t(MatrixView<const T, Cuda> G, MatrixView<T, Cuda> Tf) {
    constexpr int pairs = join_threads / t_width;
    __shared__ T S[join_cols][t_width + 1];
    const Index k = Tf.cols, first = Index(blockIdx.x) * join_cols, block = first / t_width * t_width;
    const int i = threadIdx.x % t_width, j0 = threadIdx.x / t_width;
    // zeros below
    for (Index r = block + t_width + threadIdx.x; r < k; r += join_threads) {
        for (Index j = first; j < min(k, first + join_cols); ++j) Tf.data[r + j * Tf.ld] = 0;
    }
    for (Index above = block - t_width; above >= 0; above -= t_width) {
        // S = Σ G_il X_l: X_j is an upper triangle, so the sum ends with its column
        const Index end = min(k, first + join_cols);
        T sum[2] = {};
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const Index j = first + j0 + s * pairs;
            if (j >= end) continue;
            const T* g = G.data + above + i;
            const T* const x = Tf.data + j * Tf.ld;
            T part[4] = {};
            Index l = above + t_width;
            for (; l + 4 <= j + 1; l += 4) {
#pragma unroll
                for (int e = 0; e < 4; ++e) part[e] += g[(l + e) * G.ld] * x[l + e];
            }
            for (; l <= j; ++l) part[0] += g[l * G.ld] * x[l];
            sum[s] = (part[0] + part[1]) + (part[2] + part[3]);
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < 2; ++s) S[j0 + s * pairs][i] = sum[s];
        __syncthreads();
        // X_i = −T_ii S
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const Index j = first + j0 + s * pairs;
            T total = 0;
            for (int l = i; l < t_width; ++l) total -= Tf.data[above + i + (above + l) * Tf.ld] * S[j0 + s * pairs][l];
            if (j < end) Tf.data[above + i + j * Tf.ld] = total;
        }
        __syncthreads();
    }
}

}  // namespace quoin::cuda
