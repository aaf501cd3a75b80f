#pragma once

// C := C − V op(T) VᵀC for a block of k <= 32 reflectors, V m×k, and a strip C of 16 columns, m×16.
//
// A cluster of blocks holds the strip, block b its rows [b·h, (b + 1)·h):
//
//        V      C         V and C are staged `chunk` rows at a time, columns padded so that eight neighbours share no bank
//      ┌─\──┐ ┌────┐ b=0  W = VᵀC: a warp owns rows, lane (v, c) = (lane % 8, lane / 8) the products of the columns v, v + 8,
//      │    │ │    │      … of V with c, c + 4, … of C: 8 vector loads for 16 products of vectors; the parts of the warps,
//      ├────┤ ├────┤ b=1  then the parts of the blocks are added in order, the same in every block
//      │    │ │    │      W := op(T) W: a thread owns two elements;  C −= V W: a thread owns rows
//      └────┘ └────┘
//
// Entries above a reflector's unit entry belong to R and are not read. 256 threads.

#include <cooperative_groups.h>

#include "cuda/elements/column_vectors.cuh"
#include "cuda/panels/t_recurrence.cuh"

namespace quoin::cuda {

inline constexpr int strip_threads = 256, strip_warps = strip_threads / 32, strip_width = 16, strip_blocks = 16;

template <class T, int chunk>
struct StripShared {
    static constexpr int ld = chunk + vector_size<T>, outputs = t_width * strip_width;
    alignas(16) T V[t_width][ld];
    alignas(16) T C[strip_width][ld];
    union {
        T parts[strip_warps / 2][outputs];
        struct {
            T W[outputs];  // W(i, j) at i·16 + j
            alignas(16) T TW[t_width][strip_width];
        };
    };
    T part[outputs];  // of the block, read by the others
    T Tk[t_width][t_width + 1];
};

/// Rows of a tall matrix that a block of a cluster owns, in chunks.
template <int chunk>
struct StripRows {
    Index first, count;
    __device__ StripRows(Index begin, Index m, Index h, int rank)
        : first(begin + rank * h), count(max(Index(0), min(h, m - first))) {}
    __device__ int chunks() const { return static_cast<int>((count + chunk - 1) / chunk); }
    __device__ Index begin(int at) const { return first + Index(at) * chunk; }
    __device__ int size(int at) const { return static_cast<int>(min(Index(chunk), count - Index(at) * chunk)); }
};

/// A(row : row + rows, 0 : cols) to shared memory, zeros beyond. Where `unit`, column c begins at row `diagonal + c`
/// with a one, zeros above.
template <int chunk, int width, class T>
__device__ inline void stage_chunk(const T* A, Index lda, Index row, int rows, int cols, bool unit, Index diagonal,
                                   T (&staged)[width][chunk + vector_size<T>]) {
    constexpr int v = vector_size<T>, vectors = chunk / v, batch = 4;
    A += row;
    const bool aligned = lda % v == 0 && reinterpret_cast<std::size_t>(A) % 16 == 0;
    const bool masked = unit && row < diagonal + width;
#pragma unroll 1
    for (int first = threadIdx.x; first < width * vectors; first += batch * strip_threads) {
        Vector<T> loaded[batch];
#pragma unroll
        for (int b = 0; b < batch; ++b) {
            const int at = first + b * strip_threads, c = at / vectors, i = at % vectors * v;
            if (c < cols && aligned && i + v <= rows) {
                loaded[b] = *reinterpret_cast<const Vector<T>*>(A + i + c * lda);
            } else {
#pragma unroll
                for (int e = 0; e < v; ++e) loaded[b].at[e] = c < cols && i + e < rows ? A[i + e + c * lda] : T(0);
            }
            if (masked) {
#pragma unroll
                for (int e = 0; e < v; ++e) {
                    const Index below = row + i + e - diagonal - c;
                    if (c < cols && below <= 0) loaded[b].at[e] = below == 0 ? T(1) : T(0);
                }
            }
        }
#pragma unroll
        for (int b = 0; b < batch; ++b) {
            const int at = first + b * strip_threads;
            if (at < width * vectors)
                *reinterpret_cast<Vector<T>*>(&staged[at / vectors][at % vectors * v]) = loaded[b];
        }
    }
}

/// The products of one lane.
template <class T>
struct StripProducts {
    T sum[4][4] = {};

    __device__ static int v_col(int s) { return static_cast<int>(threadIdx.x % 8) + 8 * s; }
    __device__ static int c_col(int t) { return static_cast<int>(threadIdx.x % 32 / 8) + 4 * t; }

    /// += VᵀC of the staged chunk.
    template <int chunk>
    __device__ void add(const StripShared<T, chunk>& shared, int rows) {
        constexpr int v = vector_size<T>, share = chunk / strip_warps;
        const int begin = static_cast<int>(threadIdx.x / 32) * share, end = min(begin + share, rows);
#pragma unroll 2
        for (int i = begin; i < end; i += v) {
            Vector<T> a[4], c[4];
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                a[s] = *reinterpret_cast<const Vector<T>*>(&shared.V[v_col(s)][i]);
                c[s] = *reinterpret_cast<const Vector<T>*>(&shared.C[c_col(s)][i]);
            }
#pragma unroll
            for (int e = 0; e < v; ++e) {
#pragma unroll
                for (int s = 0; s < 4; ++s) {
#pragma unroll
                    for (int t = 0; t < 4; ++t) sum[s][t] += a[s].at[e] * c[t].at[e];
                }
            }
        }
    }

    /// shared.W := the sum over the cluster. Arrives at the cluster's barrier a second time: the caller waits for it
    /// before shared.part is written again.
    template <int chunk>
    __device__ void reduce(StripShared<T, chunk>& shared) const {
        const auto cluster = cooperative_groups::this_cluster();
        constexpr int outputs = StripShared<T, chunk>::outputs, half = strip_warps / 2;
        const int warp = static_cast<int>(threadIdx.x / 32), blocks = static_cast<int>(cluster.num_blocks());
        // warp w + 4 joins w
#pragma unroll
        for (int round = 0; round < 2; ++round) {
            if (warp / half != round) {
#pragma unroll
                for (int s = 0; s < 4; ++s) {
#pragma unroll
                    for (int t = 0; t < 4; ++t) {
                        T& part = shared.parts[warp % half][v_col(s) * strip_width + c_col(t)];
                        part = round == 0 ? sum[s][t] : part + sum[s][t];
                    }
                }
            }
            __syncthreads();
        }
        for (int at = threadIdx.x; at < outputs; at += strip_threads) {
            T total = 0;
#pragma unroll
            for (int w = 0; w < half; ++w) total += shared.parts[w][at];
            shared.part[at] = total;
        }
        cluster.sync();
        for (int at = threadIdx.x; at < outputs; at += strip_threads) {
            T total = 0;
#pragma unroll 8
            for (int b = 0; b < blocks; ++b) total += *cluster.map_shared_rank(&shared.part[at], b);
            shared.W[at] = total;
        }
        cluster.barrier_arrive();
        __syncthreads();
    }
};

/// shared.TW := op(T) W.
template <bool transpose, class T, int chunk>
__device__ inline void multiply_t(StripShared<T, chunk>& shared) {
    for (int at = threadIdx.x; at < shared.outputs; at += strip_threads) {
        const int i = at / strip_width, j = at % strip_width;
        T total = 0;
#pragma unroll 8
        for (int l = 0; l < t_width; ++l) {
            total += (transpose ? shared.Tk[i][l] : shared.Tk[l][i]) * shared.W[l * strip_width + j];
        }
        shared.TW[i][j] = total;
    }
    __syncthreads();
}

/// store(i, c) for every staged row i of C − V TW, c its 16 elements.
template <class T, int chunk, class Store>
__device__ inline void subtract_product(const StripShared<T, chunk>& shared, int rows, Store store) {
    constexpr int v = vector_size<T>;
#pragma unroll 1
    for (int i = threadIdx.x; i < rows; i += strip_threads) {
        T c[strip_width];
#pragma unroll
        for (int j = 0; j < strip_width; ++j) c[j] = shared.C[j][i];
#pragma unroll 4
        for (int l = 0; l < t_width; ++l) {
            const T v_il = shared.V[l][i];
#pragma unroll
            for (int j = 0; j < strip_width; j += v) {
                const auto w = *reinterpret_cast<const Vector<T>*>(&shared.TW[l][j]);
#pragma unroll
                for (int e = 0; e < v; ++e) c[j + e] -= v_il * w.at[e];
            }
        }
        store(i, c);
    }
}

}  // namespace quoin::cuda
