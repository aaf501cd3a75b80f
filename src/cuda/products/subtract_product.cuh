#pragma once

// C := C − A B for a tall A (m×k, k <= 256) and C (m×p, 64 < p <= 104), f32 with products and sums in f64.
//
//            k                p        A warp owns 16 rows of C at a time, whole, in registers (row_tiles.cuh: 4 doubles a
//         ┌──────┐         ┌────┐      lane for every 8 columns), and reads the same rows of A once, 8 columns a step,
//      16 │ warp │    B k  │    │      two steps before it needs them. B lies in shared memory, widened, as blocks
//         ├──────┤         └────┘      8×8 in the order in which they are multiplied: lane l finds its two numbers of the
//         │  …   │        (shared)     right operand, (κ, κ') = (2t, 2t+1), at 2l. Warps exchange no data.
//
// Products of f32 are exact and sums carry f64's u; C is rounded once: |error| <= (u + O(k u²)) |C − A B| + k 2⁻⁵³ (|C|
// + |A||B|).
//
// Shared: 512 · ⌈k/8⌉⌈p/8⌉ bytes: 160 KB for k = 192, p = 100. Registers: 8⌈p/8⌉ + about 60, at most 168.
// Any ld and alignment; 8-byte accesses where A, C and their ld allow, else one element each. 2mkp flops, p rounded up
// to a multiple of 8; mk + 2mp elements read or written once. Bound by the tensor cores' f64 rate: 1 000 000×192 with
// 100 columns 1.04 ms on an H100, 39 TFLOP/s of its tiles.

#include <algorithm>

#include "cuda/kernel_choice.hpp"
#include "cuda/products/row_tiles.cuh"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda {

constexpr int subtract_warps = 12, subtract_ahead = 2;

/// Every thread of the block takes part; ready for all of them on return.
template <int col_tiles>
__device__ __forceinline__ void load_right_operand(double* blocks, int k, int p, const float* __restrict__ B,
                                                   Index ldb) {
    const int count = ceil_div(k, 8) * col_tiles * 64;
#pragma unroll 8
    for (int e = threadIdx.x; e < count; e += subtract_warps * 32) {
        const int block = e / 64, row = block / col_tiles * 8 + e % 8, col = block % col_tiles * 8 + e / 8 % 8;
        blocks[e] = row < k && col < p ? double(B[row + col * ldb]) : 0.0;
    }
    __syncthreads();
}

/// C := C − A B for the warp's 16 rows. `valid` of them exist. If `whole`, all exist, and A and C can be read in pairs.
/// B: the lane's numbers of its blocks.
template <bool whole, int col_tiles>
__device__ __forceinline__ void subtract_rows(Tile16x8 (&C)[col_tiles], int k, const float* A, Index lda, Index valid,
                                              const double2* B) {
    constexpr int ahead = subtract_ahead;
    const int steps = ceil_div(k, 8);
    const float* p = lane_of(A, lda);
    int left = lane_of(k);
    LanePairs<float> queue[ahead];
    const auto load_next = [&](LanePairs<float>& a) {
        a = load_pairs<whole>(p, lda, left, valid);
        p += 8 * lda;
        left -= 8;
    };
#pragma unroll
    for (int q = 0; q < ahead; ++q) load_next(queue[q]);
#pragma unroll 1
    for (int i = 0; i < steps; i += ahead) {
#pragma unroll
        for (int q = 0; q < ahead; ++q) {
            if (i + q >= steps) break;
            const Tile16x8 minus_a = as_left_operand(-queue[q].widened());
            load_next(queue[q]);
            // C(:, j) −= A(:, i) B(i, j)
#pragma unroll
            for (int j = 0; j < col_tiles; ++j) {
                const double2 b = B[j * 32];
                multiply_add(C[j], minus_a, {{b.x, b.y}});
            }
            B += col_tiles * 32;
        }
    }
}

template <int col_tiles>
__global__ void __launch_bounds__(subtract_warps * 32, 1)
    subtract_product_kernel(Index m, int k, int p, const float* __restrict__ A, Index lda, const float* __restrict__ B,
                            Index ldb, float* C, Index ldc) {
    extern __shared__ __align__(16) unsigned char shared[];
    double* const blocks = reinterpret_cast<double*>(shared);
    load_right_operand<col_tiles>(blocks, k, p, B, ldb);
    const double2* const of_lane = reinterpret_cast<const double2*>(blocks) + threadIdx.x % 32;
    const bool pairs_a = aligned_pairs(A, lda), pairs_c = aligned_pairs(C, ldc);
    const Index step = Index(gridDim.x) * (subtract_warps * 16);
    for (Index row = (Index(blockIdx.x) * subtract_warps + threadIdx.x / 32) * 16; row < m; row += step) {
        const Index valid = m - row;
        Tile16x8 tiles[col_tiles];
        load_rows(tiles, C + row, ldc, p, valid, pairs_c);
        if (pairs_a && valid >= 16) {
            subtract_rows<true>(tiles, k, A + row, lda, valid, of_lane);
        } else {
            subtract_rows<false>(tiles, k, A + row, lda, valid, of_lane);
        }
        store_rows(tiles, C + row, ldc, p, valid, pairs_c);
    }
}

/// 0 < k <= 256, 64 < p <= 104.
inline void subtract_product(Context<Cuda>& ctx, MatrixView<const float, Cuda> A, MatrixView<const float, Cuda> B,
                             MatrixView<float, Cuda> C) {
    const int k = static_cast<int>(A.cols), p = static_cast<int>(C.cols);
    const auto blocks = static_cast<unsigned>(
        std::min<Index>(ctx.state().kernels.multiprocessors, ceil_div(C.rows, Index(subtract_warps * 16))));
    with_constant<9, 13>(ceil_div(p, 8), [&](auto col_tiles) {
        const std::size_t bytes = sizeof(double) * 64 * ceil_div(k, 8) * col_tiles;
        launch(ctx.stream(), subtract_product_kernel<col_tiles>, {blocks, subtract_warps * 32, bytes}, C.rows, k, p,
               A.data, A.ld, B.data, B.ld, C.data, C.ld);
    });
}

}  // namespace quoin::cuda
