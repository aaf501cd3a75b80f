#pragma once

// Greedy pivots of a Gram matrix: PᵀGP = RᵀR, n <= 192, by one block.
//
// R is built by rows in shared memory, packed, in the order of the pivots so far. Step k:
//
//     p := the first of the largest d_j, j >= k;  columns k and p of R, and d_k and d_p, change places
//     r_kj := (g_kj − Σ_{i<k} r_ik r_ij) / √d_k,   d_j := d_j − r_kj²,   j >= k
//
// d_j is the squared norm that column j has below row k. Thread (j, part) adds every `parts`-th i, and four barriers
// separate the parts of a step. G stays in global memory. Each step reads one row of it, from L2.
//
// Shared: n(n + 1)/2 doubles and 8 KB: 157 KB for n = 192. n³/3 flops. Bound by the latency of n steps, and by shared
// memory: n³/6 reads of R.

#include "quoin/matrix.hpp"

namespace quoin::cuda {

constexpr int pivot_gram_cols = 192, pivot_gram_parts = 4, pivot_gram_threads = pivot_gram_cols * pivot_gram_parts;

__host__ __device__ constexpr Index packed_triangle(Index n) { return n * (n + 1) / 2; }

struct PivotGramShared {
    double sums[pivot_gram_parts][pivot_gram_cols];
    double left[pivot_gram_cols];  ///< d
    int order[pivot_gram_cols], pivot;
};

constexpr Index pivot_gram_bytes(Index n) { return sizeof(double) * packed_triangle(n) + sizeof(PivotGramShared); }

template <class T>
__device__ __forceinline__ void exchange(T& x, T& y) {
    const T held = x;
    x = y;
    y = held;
}

/// Writes the first place of the largest left_j, first <= j < n, or `first` if none is positive. By one warp.
__device__ __forceinline__ void choose_pivot(PivotGramShared& s, int first, int n) {
    double most = 0;
    int place = first;
    for (int j = first + threadIdx.x; j < n; j += 32) {
        if (s.left[j] > most) most = s.left[j], place = j;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(~0u, most, step);
        const int other_place = __shfl_xor_sync(~0u, place, step);
        if (other > most || (other == most && other_place < place)) most = other, place = other_place;
    }
    if (threadIdx.x == 0) s.pivot = place;
}

__global__ void __launch_bounds__(pivot_gram_threads, 1) pivot_gram_kernel(int n, double* G, Index ldg, Index* order) {
    extern __shared__ double packed[];
    __shared__ PivotGramShared s;
    const int j = threadIdx.x % pivot_gram_cols, part = threadIdx.x / pivot_gram_cols;
    const auto R = [&](int row, int col) -> double& { return packed[row * (2 * n - row - 1) / 2 + col]; };
    const auto entry = [&](int row, int col) {
        const int a = s.order[row], b = s.order[col];
        return G[min(a, b) + max(a, b) * ldg];
    };
    if (part == 0 && j < n) {
        s.order[j] = j;
        s.left[j] = G[j + j * ldg];
    }
    for (int k = 0; k < n; ++k) {
        __syncthreads();
        if (threadIdx.x < 32) choose_pivot(s, k, n);
        __syncthreads();
        if (part == 0 && j < k) exchange(R(j, k), R(j, s.pivot));
        if (part == 0 && j == k) {
            exchange(s.order[k], s.order[s.pivot]);
            exchange(s.left[k], s.left[s.pivot]);
        }
        __syncthreads();
        const bool remains = j >= k && j < n;
        if (remains) {
            double sum = part == 0 ? entry(k, j) : 0.0;
#pragma unroll 4
            for (int i = part; i < k; i += pivot_gram_parts) sum -= R(i, k) * R(i, j);
            s.sums[part][j] = sum;
        }
        __syncthreads();
        if (part > 0 || !remains) continue;
        double sum = 0;
        for (int q = 0; q < pivot_gram_parts; ++q) sum += s.sums[q][j];
        const double r = sum * rsqrt(s.left[k]);
        R(k, j) = r;
        if (j > k) s.left[j] -= r * r;
    }
    __syncthreads();
    // G := PᵀGP, through the memory of R
    const auto for_each_entry = [&](auto f) {
        for (int col = threadIdx.x / 32; col < n; col += pivot_gram_threads / 32) {
            for (int row = threadIdx.x % 32; row <= col; row += 32) f(row, col);
        }
    };
    for_each_entry([&](int row, int col) { R(row, col) = entry(row, col); });
    __syncthreads();
    for_each_entry([&](int row, int col) { G[row + col * ldg] = R(row, col); });
    if (part == 0 && j < n) order[j] = s.order[j];
}

}  // namespace quoin::cuda
