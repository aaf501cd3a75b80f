#pragma once

// C (m×p) := op(H) C for k <= 32 reflectors, H = I − V T Vᵀ (gemqrt): one launch, one cluster a strip of 16 columns of C.
//
// A cluster of blocks holds the strip, block b its rows [b·h, (b + 1)·h):
//
//        V      C         V and C are staged `strip_chunk` rows at a time, columns padded so that eight neighbours share no bank
//      ┌─\──┐ ┌────┐ b=0  W = VᵀC: a warp owns rows, lane (v, c) = (lane % 8, lane / 8) the products of the columns v, v + 8,
//      │    │ │    │      … of V with c, c + 4, … of C: 8 vector loads for 16 products of vectors; the parts of the warps,
//      ├────┤ ├────┤ b=1  then those of the blocks are added in order, the same in every block
//      │    │ │    │      W := op(T) W: a thread owns two elements;  C −= V W: a thread owns rows
//      └────┘ └────┘
//
// What lies above a reflector's unit entry is not read: it is R. A block of one chunk reads V and C once, one of more twice. 4mkp
// flops; 256 threads, two blocks a multiprocessor. Bound by shared memory, and by the latency of the cluster's barrier.

#include <cooperative_groups.h>

#include <type_traits>

#include "column_vectors.cuh"

namespace quoin::cuda {

inline constexpr int strip_threads = 256, strip_warps = strip_threads / 32, strip_width = 16, strip_blocks = 16,
                     strip_reflectors = 32;
template <class T>
inline constexpr int strip_chunk = std::is_same_v<T, float> ? 512 : 192;

template <class T>
struct StripShared {
    static constexpr int ld = strip_chunk<T> + vector_size<T>, outputs = strip_reflectors * strip_width;
    alignas(16) T V[strip_reflectors][ld];
    alignas(16) T C[strip_width][ld];
    union {
        T parts[strip_warps / 2][outputs];
        struct {
            T W[outputs];  // W(i, j) at i·16 + j
            alignas(16) T TW[strip_reflectors][strip_width];
        };
    };
    T part[outputs];  // of the block, read by the others
    T Tk[strip_reflectors][strip_reflectors + 1];
};

/// A(row : row + rows, 0 : cols) to shared memory, zeros beyond. Where `unit`, column c begins at row c with a one, zeros above.
template <int width, class T>
__device__ inline void stage_chunk(const T* A, Index lda, Index row, int rows, int cols, bool unit,
                                   T (&staged)[width][StripShared<T>::ld]) {
    constexpr int v = vector_size<T>, vectors = strip_chunk<T> / v, batch = 4;
    A += row;
    const bool aligned = lda % v == 0 && reinterpret_cast<std::size_t>(A) % 16 == 0;
    const bool masked = unit && row < width;
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
                    const Index below = row + i + e - c;
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
    __device__ void add(const StripShared<T>& shared, int rows) {
        constexpr int v = vector_size<T>, chunk = strip_chunk<T>, share = chunk / strip_warps;
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

    /// shared.W := the sum over the cluster. Arrives at the cluster's barrier a second time: the caller waits for it before it leaves,
    /// since others read its shared.part.
    __device__ void reduce(StripShared<T>& shared) const {
        const auto cluster = cooperative_groups::this_cluster();
        constexpr int outputs = StripShared<T>::outputs, half = strip_warps / 2;
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
template <bool transpose, class T>
__device__ inline void multiply_t(StripShared<T>& shared) {
    for (int at = threadIdx.x; at < shared.outputs; at += strip_threads) {
        const int i = at / strip_width, j = at % strip_width;
        T total = 0;
#pragma unroll 8
        for (int l = 0; l < strip_reflectors; ++l) {
            total += (transpose ? shared.Tk[i][l] : shared.Tk[l][i]) * shared.W[l * strip_width + j];
        }
        shared.TW[i][j] = total;
    }
    __syncthreads();
}

/// store(i, c) for every staged row i of C − V TW, c its 16 elements.
template <class T, class Store>
__device__ inline void subtract_product(const StripShared<T>& shared, int rows, Store store) {
    constexpr int v = vector_size<T>;
#pragma unroll 1
    for (int i = threadIdx.x; i < rows; i += strip_threads) {
        T c[strip_width];
#pragma unroll
        for (int j = 0; j < strip_width; ++j) c[j] = shared.C[j][i];
#pragma unroll 4
        for (int l = 0; l < strip_reflectors; ++l) {
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

template <class T>
struct StripOperands {
    Index m;
    int k;
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
__global__ void __launch_bounds__(strip_threads, 2) apply_strip(StripOperands<T> q) {
    const auto cluster = cooperative_groups::this_cluster();
    constexpr int chunk = strip_chunk<T>;
    extern __shared__ __align__(16) unsigned char strip_memory[];
    auto& shared = *reinterpret_cast<StripShared<T>*>(strip_memory);
    const Index first_row = cluster.block_rank() * q.h, rows = max(Index(0), min(q.h, q.m - first_row));
    const Index first_col = Index(blockIdx.x / cluster.num_blocks()) * strip_width;
    const int cols = static_cast<int>(min(Index(strip_width), q.p - first_col));
    const int chunks = static_cast<int>((rows + chunk - 1) / chunk);
    T* const C = q.C + first_col * q.ldc;
    const auto begin = [&](int at) { return first_row + Index(at) * chunk; };
    const auto size = [&](int at) { return static_cast<int>(min(Index(chunk), rows - Index(at) * chunk)); };
    const auto load = [&](int at) {
        __syncthreads();
        stage_chunk(q.V, q.ldv, begin(at), size(at), q.k, true, shared.V);
        stage_chunk(C, q.ldc, begin(at), size(at), cols, false, shared.C);
        __syncthreads();
    };
    // W = VᵀC
    StripProducts<T> products;
    for (int at = 0; at < chunks; ++at) {
        load(at);
        products.add(shared, size(at));
    }
    for (int at = threadIdx.x; at < strip_reflectors * strip_reflectors; at += strip_threads) {
        const int i = at % strip_reflectors, j = at / strip_reflectors;
        shared.Tk[j][i] = i <= j && j < q.k ? q.Tf[i + j * q.ldt] : T(0);
    }
    products.reduce(shared);
    multiply_t<transpose>(shared);
    // C −= V W, the last chunk first: it is still there
    for (int at = chunks - 1; at >= 0; --at) {
        if (at < chunks - 1) load(at);
        subtract_product(shared, size(at), [&](int i, const T(&c)[strip_width]) {
#pragma unroll
            for (int j = 0; j < strip_width; ++j) {
                if (j < cols) C[begin(at) + i + j * q.ldc] = c[j];
            }
        });
    }
    cluster.barrier_wait();
}

}  // namespace quoin::cuda
