#pragma once

// An upper triangular factor R (n×n) in shared memory, ready for X := A R⁻¹ by blocked substitution in blocks of 8:
//
//   X_i = A_i R_ii⁻¹,   X_i += (A_i − X_i R_ii) R_ii⁻¹,   A_j := A_j − X_i R_ij  for j > i
//
// A row of blocks is R_ii⁻¹, R_ii, R_i,i+1, …, one row after the other, each block 8×8, column-major, contiguous: lane
// l of a warp finds its two numbers of the right operand, (κ, κ') = (2t, 2t+1), at 2l. Beyond n, R is continued by the
// identity.
//
// Error: an explicit inverse leaves |A_i − X_i R_ii| <= c u |A_i||R_ii⁻¹||R_ii|; the step of refinement multiplies that
// by c u |R_ii⁻¹||R_ii| and adds c u |X_i||R_ii|, all that substitution leaves (Higham 2002, 12.2). So |A − X R| <= c u
// |X||R| row by row, in f64 whatever T is, while u κ(R_ii)² is O(1) for the 8×8 diagonal blocks.
//
// A warp takes 16 rows of A as tiles (row_tiles.cuh): in X := A R⁻¹ the order of rows is free.

#include "cuda/arch/sm80_dmma.cuh"
#include "cuda/cholesky/block_lu.cuh"
#include "quoin/matrix.hpp"

namespace quoin::cuda {

__host__ __device__ constexpr int factor_block_count(int col_tiles) { return col_tiles * (col_tiles + 3) / 2; }

/// Every thread of the block takes part. `blocks` is ready for all of them on return.
template <int col_tiles, int threads>
__device__ __forceinline__ void load_factor(double* blocks, int n, const double* __restrict__ R, Index ldr) {
    constexpr int warps = threads / 32, batch = 8, count = factor_block_count(col_tiles) - col_tiles;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int i = 0, j = warp;
    for (int first = warp; first < count; first += batch * warps) {
        double r[batch][2];
        int place[batch];
#pragma unroll
        for (int q = 0; q < batch; ++q) {
            while (i < col_tiles && j >= col_tiles) {
                ++i;
                j += i - col_tiles;
            }
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int row = 8 * i + lane % 8, col = 8 * j + lane / 8 + 4 * e;
                r[q][e] = row == col ? 1.0 : 0.0;
                if (row <= col && col < n) r[q][e] = R[row + col * ldr];
            }
            // after the inverses of the rows up to i
            place[q] = first + q * warps + i + 1;
            j += warps;
        }
#pragma unroll
        for (int q = 0; q < batch; ++q) {
            if (first + q * warps < count) {
                blocks[place[q] * 64 + lane] = r[q][0];
                blocks[place[q] * 64 + 32 + lane] = r[q][1];
            }
        }
    }
    __syncthreads();
    static_assert(threads >= 8 * col_tiles);
    const int tile = threadIdx.x / 8, column = threadIdx.x % 8;
    if (tile < col_tiles) {
        double* const inverse = blocks + (tile * (col_tiles + 1) - tile * (tile - 1) / 2) * 64;
        const double* const D = inverse + 64;
        double y[8], reciprocals[8];
#pragma unroll
        for (int r = 0; r < 8; ++r) reciprocals[r] = short_reciprocal(D[r + r * 8]);
            // R_ii y = e_column
#pragma unroll
        for (int r = 7; r >= 0; --r) {
            double sum = r == column ? 1.0 : 0.0;
#pragma unroll
            for (int q = r + 1; q < 8; ++q) sum -= D[r + q * 8] * y[q];
            y[r] = r > column ? 0.0 : sum * reciprocals[r];
        }
#pragma unroll
        for (int r = 0; r < 8; ++r) inverse[r + column * 8] = y[r];
    }
    __syncthreads();
}

/// X := X R⁻¹ for the warp's 16 rows. `begin(j)` comes before X_j is first read, `end(i)` when X_i is solved and X[i]
/// no longer read.
template <int col_tiles, class Begin, class End>
__device__ __forceinline__ void solve_rows(Tile16x8 (&X)[col_tiles], const double* blocks, Begin begin, End end) {
    const double2* block = reinterpret_cast<const double2*>(blocks) + threadIdx.x % 32;
    // a block is read this many products ahead of its own: a shared-memory load takes as long as one
    constexpr int ahead = 3, count = factor_block_count(col_tiles);
    double2 queue[ahead];
#pragma unroll
    for (int b = 0; b < ahead && b < count; ++b) queue[b] = block[b * 32];
    int used = 0;
    const auto next = [&] {
        const double2 b = queue[used % ahead];
        if (used + ahead < count) queue[used % ahead] = block[(used + ahead) * 32];
        ++used;
        return Tile8x8{{b.x, b.y}};
    };
#pragma unroll
    for (int i = 0; i < col_tiles; ++i) {
        if (i == 0) begin(0);
        Tile16x8 solved = {}, rest = X[i];
        const Tile8x8 inverse = next(), diagonal = next();
        // X_i = A_i R_ii⁻¹;  X_i += (A_i − X_i R_ii) R_ii⁻¹
        multiply_add(solved, as_left_operand(X[i]), inverse);
        multiply_add(rest, as_left_operand(-solved), diagonal);
        multiply_add(solved, as_left_operand(rest), inverse);
        X[i] = solved;
        const Tile16x8 left = as_left_operand(-solved);
        end(i);
        // A_j := A_j − X_i R_ij
#pragma unroll
        for (int j = i + 1; j < col_tiles; ++j) {
            if (i == 0) begin(j);
            multiply_add(X[j], left, next());
        }
    }
}
template <int col_tiles>
__device__ __forceinline__ void solve_rows(Tile16x8 (&X)[col_tiles], const double* blocks) {
    solve_rows(
        X, blocks, [](int) {}, [](int) {});
}

}  // namespace quoin::cuda
