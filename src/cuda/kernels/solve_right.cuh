#pragma once

// X := A R⁻¹ for a tall A (m×n, 64 < n <= 192) and an upper triangular R; X may be A.
//
// A warp owns 16 rows at a time, whole, in registers (4 doubles a lane for every 8 columns): rows are independent, so warps
// exchange no data. R lies in shared memory (factor_blocks.cuh: the layout and the error bound). Registers leave no room
// for two tiles a warp. Warps that start together stay in step, and memory and tensor cores wait for each other; in f32,
// where the two weigh about the same, the two or three warps of a scheduler therefore take turns: one solves while the
// others store and load (1 000 000×192: 1.00 ms with turns, 1.04 without; f64, bound by memory: 1.41 and 1.28).
//
// Shared: 256 · k(k+3) bytes, k = ⌈n/8⌉ rounded up to even: 162 KB for n = 192. Registers: 8k + about 50.
// Any ld and alignment. mn² flops in f64 whatever T is; m·n elements read, m·n written. Bound by memory in f64 (n <= 192),
// by the tensor cores' f64 rate in f32 from n ≈ 120 on.

#include <algorithm>

#include "cuda/kernels/ceil_div.cuh"
#include "cuda/kernels/factor_blocks.cuh"
#include "cuda/kernels/row_tiles.cuh"
#include "cuda/launch.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

/// Warps of a block: as many as registers hold, at most 15 for want of barriers, a multiple of the four schedulers.
__host__ __device__ constexpr int solve_warps(int col_tiles) { return col_tiles <= 16 ? 12 : 8; }

/// Whether warps take turns.
template <class T>
constexpr bool take_turns = std::is_same_v<T, float>;

/// Turns of the warps w, w + 4, w + 8, … (one scheduler's) of a block; barrier w + 1 is warp w's turn.
template <int warps>
struct Turns {
    int warp = threadIdx.x / 32;

    __device__ void begin() const {
        if (warp >= warps - 4) pass();
    }
    __device__ void wait() const { asm volatile("bar.sync %0, 64;" ::"r"(warp + 1) : "memory"); }
    __device__ void pass() const { asm volatile("bar.arrive %0, 64;" ::"r"((warp + 4) % warps + 1) : "memory"); }
    /// The turn that `begin` brought into play is still out: the first warp takes it.
    __device__ void end() const {
        if (warp < 4) wait();
    }
};

template <class T, int col_tiles>
__global__ void __launch_bounds__(solve_warps(col_tiles) * 32, 1)
    solve_right_kernel(Index m, int n, const T* A, Index lda, const double* __restrict__ R, Index ldr, T* X, Index ldx,
                       const Certificate* certificate, double others_condition) {
    extern __shared__ __align__(16) unsigned char shared[];
    if (certificate && (certificate->refused() || certificate->factor_has(others_condition))) return;
    double* const blocks = reinterpret_cast<double*>(shared);
    constexpr int warps = solve_warps(col_tiles);
    load_factor<col_tiles, warps * 32>(blocks, n, R, ldr);
    const Turns<warps> turns;
    const bool pairs_a = aligned_pairs(A, lda), pairs_x = aligned_pairs(X, ldx);
    const Index step = Index(gridDim.x) * warps * 16, rounds = ceil_div(m, step);
    // neighbouring rows to one block where there are many, to as many blocks as possible where there are few
    Index row = (rounds > 1 ? Index(blockIdx.x) * warps + turns.warp : Index(turns.warp) * gridDim.x + blockIdx.x) * 16;
    if constexpr (take_turns<T>) turns.begin();
    // every warp makes every round, the last one perhaps without rows
    for (Index round = 0; round < rounds; ++round, row += step) {
        Tile16x8 tile[col_tiles];
        load_rows(tile, A + row, lda, n, m - row, pairs_a);
        if constexpr (take_turns<T>) turns.wait();
        solve_rows(tile, blocks);
        if constexpr (take_turns<T>) turns.pass();
        store_rows(tile, X + row, ldx, n, m - row, pairs_x);
    }
    if constexpr (take_turns<T>) turns.end();
}

/// X is left as it is where the certificate (null: none) is refused, or its factor has at most the condition up to which X is made by
/// another kernel (−1: none).
template <class T>
cudaError_t solve_right(Index m, int n, const T* A, Index lda, const double* R, Index ldr, T* X, Index ldx,
                        const Certificate* certificate, double others_condition, int multiprocessors,
                        cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>(std::min<Index>(multiprocessors, ceil_div(m, Index(16))));
    return with_constant<5, 12>(ceil_div(n, 16), [&](auto pairs) {
        constexpr int col_tiles = 2 * pairs;
        constexpr std::size_t bytes = sizeof(double) * 64 * factor_block_count(col_tiles);
        return launch(solve_right_kernel<T, col_tiles>, {blocks, solve_warps(col_tiles) * 32, bytes}, stream, m, n, A,
                      lda, R, ldr, X, ldx, certificate, others_condition);
    });
}

}  // namespace quoin::cuda
