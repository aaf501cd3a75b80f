#pragma once

// C := C − V W in f32 by three products of f16, V m×k with k <= 256, from the image of Vᵀ that VᵀC takes
// (corrected_product.cuh).
//
//     Vᵀ's image ──bulk copies──▶ shared memory, `stages` tiles: 64 rows of V, 128 columns ──┐
//                                                                                            ├──▶ wgmma m64n64k16: WᵀVᵀ
//     W, whole ──▶ registers, hi and lo, 64 columns a warpgroup ─────────────────────────────┘
//
// A block has 128 columns of C, 64 of its rows at a time. One warpgroup copies, two multiply, 64 columns of C each:
// while one subtracts the other's products keep the tensor cores busy. The rows of the image are ordered so that a
// thread's four results for 16 rows of C are neighbours, and the thread reads and writes them at once. A sum of
// products, of 3k terms, starts from zero, and f32 subtracts it.
//
// 6mkp flops of f16, k rounded up to 128 or 256. C is read and written once, and V's image once for 128 columns of C.

#include "cuda/products/corrected_product.cuh"

namespace quoin::cuda::corrected {

inline constexpr int max_update_depth = 2 * tile_rows;

/// Four neighbours of a column. `left` of them exist.
template <bool aligned>
__device__ __forceinline__ void load_four(const float* from, Index left, float (&to)[4]) {
    if (aligned && left >= 4) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) to[e] = e < left ? from[e] : 0.0f;
    }
}
template <bool aligned>
__device__ __forceinline__ void store_four(const float (&from)[4], Index left, float* to) {
    if (aligned && left >= 4) {
        *reinterpret_cast<float4*>(to) = {from[0], from[1], from[2], from[3]};
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (e < left) to[e] = from[e];
        }
    }
}

/// C := C − V W for V = Xᵀ of `row_blocks` blocks of 128 columns. `largest`: of W. Each block has `tiles_each` tiles of
/// V's rows. Blocks that share rows of V follow each other. `aligned`: columns of C are at multiples of 16 bytes.
template <int row_blocks, bool aligned>
__global__ void __launch_bounds__(threads, 1)
    corrected_update_kernel(Image X, MatrixView<const float, Cuda> W, const unsigned* largest, Index tiles_each,
                            MatrixView<float, Cuda> C) {
    Shared& s = open_shared();
    const Index col_blocks = (C.cols + p_block - 1) / p_block, first = blockIdx.x / col_blocks * tiles_each;
    const int count = static_cast<int>(min(tiles_each, X.col_blocks() - first));
    if (threadIdx.x < warpgroup) {
        return copy_tiles(s, count * row_blocks,
                          [&](int i) { return X.tile_of(i % row_blocks, first + i / row_blocks); });
    }
    take_registers<240>();
    const int lane = threadIdx.x % 32, q = lane % 4, warp = threadIdx.x / 32 - warpgroup / 32;
    const Index p_first = blockIdx.x % col_blocks * p_block + 16 * warp + lane / 4, p[2] = {p_first, p_first + 8};
    constexpr int depth_steps = tile_rows / 16;
    unsigned hi[row_blocks * depth_steps][4], lo[row_blocks * depth_steps][4];
    {
        const float scale = scalbnf(1.0f, exponent_of_scale(largest));
#pragma unroll
        for (int x = 0; x < 4 * row_blocks * depth_steps; ++x) {
            const Index i = x / 4 * 16 + x % 4 / 2 * 8 + 2 * q, j = p[x % 2];
            halves_of_pair(scale * entry_of<false>(W, i, j), scale * entry_of<false>(W, i + 1, j), hi[x / 4][x % 4],
                           lo[x / 4][x % 4]);
        }
#pragma unroll
        for (int x = 0; x < 4 * row_blocks * depth_steps; ++x) settle(hi[x / 4][x % 4]), settle(lo[x / 4][x % 4]);
    }
    const float alpha = scalbnf(1.0f, -halves_exponent - exponent_of_scale(largest));
    for (int i = 0; i < count; ++i) {
        float d[32], c[2][4][4];
        begin_products();
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
            const int tile_number = i * row_blocks + b, stage = tile_number % stages;
            s.full[stage].receive(tile_number / stages);
            const std::uint64_t X_tile = descriptor(s.tiles[stage]);
#pragma unroll
            for (int step = 0; step < depth_steps; ++step) {
                const int x = b * depth_steps + step;
                const std::uint64_t X_hi = X_tile + step * (16 * image_cols * sizeof(__half) >> 4),
                                    X_lo = X_hi + (tile * sizeof(__half) >> 4);
                if (x == 0) {
                    multiply<true>(d, lo[x], X_hi);
                } else {
                    multiply_add<true>(d, lo[x], X_hi);
                }
                multiply_add<true>(d, hi[x], X_lo);
                multiply_add<true>(d, hi[x], X_hi);
            }
        }
        commit_products();
        const Index row = (first + i) * image_cols + 4 * q;
#pragma unroll
        for (int x = 0; x < 8; ++x) {
            if (p[x % 2] < C.cols)
                load_four<aligned>(C.data + row + x / 2 * 16 + p[x % 2] * C.ld, C.rows - row - x / 2 * 16,
                                   c[x % 2][x / 2]);
        }
        wait_for_products();
#pragma unroll
        for (int x = 0; x < 32; ++x) settle(d[x]);
        if (threadIdx.x % warpgroup == 0) {
            for (int b = 0; b < row_blocks; ++b) s.empty[(i * row_blocks + b) % stages].arrive();
        }
#pragma unroll
        for (int x = 0; x < 8; ++x) {
            if (p[x % 2] >= C.cols) continue;
            auto& four = c[x % 2][x / 2];
#pragma unroll
            for (int e = 0; e < 4; ++e) four[e] = fmaf(-alpha, d[x / 2 * 8 + e / 2 * 4 + x % 2 * 2 + e % 2], four[e]);
            store_four<aligned>(four, C.rows - row - x / 2 * 16, C.data + row + x / 2 * 16 + p[x % 2] * C.ld);
        }
    }
}

}  // namespace quoin::cuda::corrected
