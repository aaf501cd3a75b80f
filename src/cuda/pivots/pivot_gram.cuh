#pragma once

// Greedy pivots of a Gram matrix: PᵀGP = RᵀR, n <= 192, by one block.
//
// Holds the Schur complement S of the pivots so far in shared memory, packed by rows, and its diagonal d once more.
// Step k:
//
//     p := the first of the largest d_j, j >= k;  rows and columns k and p of S, and d_k and d_p, change places
//     v_j := s_kj / √d_k,   d_j := d_j − v_j²,   j > k
//     s_ij := s_ij − v_i v_j,   k < i <= j
//
// Thread j alone reads and writes s_kj and s_pj in the first two lines, and every warp of theirs searches d. Therefore
// two places for d alternate, and a step has two barriers. A warp updates a row, with v in registers. R is not kept:
// the caller factors PᵀGP.
//
// Shared: n(n + 1)/2 doubles and 6 KB: 154 KB for n = 192. n³/3 flops. Bound by shared memory: n³/6 entries are read
// and written.

#include "cuda/pivots/candidates.cuh"
#include "primitives/elements.hpp"

namespace quoin::cuda {

constexpr int pivot_gram_cols = 192, pivot_gram_threads = 768;

struct PivotGramShared {
    double diagonal[2][pivot_gram_cols];  ///< d before and after a step, in turns
    double v[pivot_gram_cols];
    int order[pivot_gram_cols];
};

constexpr Index pivot_gram_bytes(Index n) { return sizeof(double) * packed_column(n, n) + sizeof(PivotGramShared); }

/// Returns the first place of the largest d_j, first <= j < n, or `first` if none is positive. A whole warp calls it.
__device__ __forceinline__ int largest_entry(const double* d, int first, int n) {
    Candidate best;
    for (int j = first + threadIdx.x % 32; j < n; j += 32) {
        // positive doubles have the order of their bits
        const Candidate candidate{d[j] > 0 ? bits_of(d[j]) : 0, static_cast<unsigned>(j), 0};
        if (candidate.is_better_than(best)) best = candidate;
    }
    int lane;
    return static_cast<int>(best_of_warp(best, lane).place);
}

__global__ void __launch_bounds__(pivot_gram_threads, 1) pivot_gram_kernel(int n, double* G, Index ldg, Index* order) {
    extern __shared__ double packed[];
    __shared__ PivotGramShared s;
    constexpr int warps = pivot_gram_threads / 32, of_lane = pivot_gram_cols / 32;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const auto S = [&](int row, int col) -> double& {
        const int i = min(row, col);
        return packed[i * (2 * n - i - 1) / 2 + max(row, col)];
    };
    // S := PᵀGP
    const auto load = [&] {
        for (int row = warp; row < n; row += warps) {
            for (int col = row + lane; col < n; col += 32) {
                const int a = s.order[row], b = s.order[col];
                S(row, col) = G[min(a, b) + max(a, b) * ldg];
            }
        }
    };
    if (thread < n) {
        s.order[thread] = thread;
        s.diagonal[0][thread] = G[thread + thread * ldg];
    }
    __syncthreads();
    load();
    for (int k = 0; k < n; ++k) {
        __syncthreads();
        if (thread < pivot_gram_cols) {
            const double* const before = s.diagonal[k % 2];
            const int j = thread, p = largest_entry(before, k, n);
            const double pivot = before[p];
            if (j == k) {
                const int first = s.order[k];
                s.order[k] = s.order[p];
                s.order[p] = first;
            }
            if (j > k && j < n) {
                const double v = S(p, j == p ? k : j) * rsqrt(pivot);
                if (j == p)
                    S(p, p) = S(k, k);
                else if (p != k)
                    S(p, j) = S(k, j);
                s.v[j] = v;
                s.diagonal[(k + 1) % 2][j] = before[j == p ? k : j] - v * v;
            }
        }
        __syncthreads();
        double v[of_lane];
#pragma unroll
        for (int c = 0; c < of_lane; ++c) v[c] = 32 * c + lane < n ? s.v[32 * c + lane] : 0;
        for (int i = k + 1 + warp; i < n; i += warps) {
            double* const row = packed + i * (2 * n - i - 1) / 2 + lane;
            const double x = s.v[i];
#pragma unroll
            for (int c = 0; c < of_lane; ++c) {
                const int j = 32 * c + lane;
                if (32 * c + 31 >= i && j >= i && j < n) row[32 * c] -= x * v[c];
            }
        }
    }
    __syncthreads();
    load();
    __syncthreads();
    for (int col = warp; col < n; col += warps) {
        for (int row = lane; row <= col; row += 32) G[row + col * ldg] = S(row, col);
    }
    if (thread < n) order[thread] = s.order[thread];
}

}  // namespace quoin::cuda
