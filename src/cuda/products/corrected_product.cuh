#pragma once

// C := X B in f32 by three products of f16 (halves.cuh), X n×K, B K×p.
//
//   make_image_kernel         X as hi and lo, tile by tile, as the tensor cores read them in shared memory: 128 rows by
//                             64 columns, hi before lo, 16 KiB each, zeros beyond X. A bulk copy brings a tile.
//   corrected_product_kernel  a block 128×128 of C, for some or all of K:
//
//                      X's image ──bulk copies──▶ shared memory, `stages` tiles ──┐
//                                                                                 ├──▶ wgmma m64n128k16: Cᵀ += Bᵀ Xᵀ
//                      B ──▶ registers, a tile ahead; hi and lo are made there ───┘
//
//                      One warpgroup copies, two multiply, 64 columns of B each. While one splits its next operands the
//                      other's products keep the tensor cores busy. H200: 620 to 650 TFLOP/s of f16, and B is read once
//                      for 128 rows of X.
//
// The tensor cores cut sums off where they should round. Each tile's sum of 64 terms starts from zero, and these are
// added in f32.

#include "cuda/arch/sm90_wgmma.cuh"
#include "cuda/elements/batch_entries.cuh"
#include "cuda/elements/elementwise.cuh"
#include "cuda/products/halves.cuh"

namespace quoin::cuda::corrected {

inline constexpr int tile_rows = 128, tile_cols = image_cols, tile = tile_rows * tile_cols,
                     tile_bytes = 2 * tile * int(sizeof(__half)), stages = 6, threads = 3 * warpgroup, p_block = 128,
                     steps = tile_cols / 16;

/// The tiles of X, starting with its first 128 rows.
struct Image {
    __half* data;
    Index n, K;
    __host__ __device__ Index row_blocks() const { return (n + tile_rows - 1) / tile_rows; }
    __host__ __device__ Index col_blocks() const { return (K + tile_cols - 1) / tile_cols; }
    __device__ __half* tile_of(Index row_block, Index col_block) const {
        return data + 2 * tile * (row_block * col_blocks() + col_block);
    }
    __host__ __device__ Index elements() const { return 2 * tile * row_blocks() * col_blocks(); }
};

/// The image of X = s op(A). Of 16 columns of X lane q of a quad multiplies four: 4q, …, 4q + 3 lie where operands have
/// 2q, 2q + 1, 2q + 8, 2q + 9. A thread makes 8 neighbours of the image, 16 bytes of hi and of lo; two threads write a
/// sector of 32 bytes.
template <bool unit_lower, bool transpose>
__global__ void __launch_bounds__(element_threads)
    make_image_kernel(MatrixView<const float, Cuda> A, const unsigned* largest, Image image) {
    const float scale = scalbnf(1.0f, exponent_of_scale(largest));
    const Index groups = 8 * image.col_blocks(), padded = tile_rows * image.row_blocks(), total = padded * groups;
    const bool pairs = transpose && reinterpret_cast<std::uintptr_t>(A.data) % sizeof(float2) == 0 && A.ld % 2 == 0;
    for (Index x = Index(blockIdx.x) * element_threads + threadIdx.x; x < total;
         x += Index(gridDim.x) * element_threads) {
        // a warp reads a column of A
        const Index row = transpose ? x / groups : x % padded, group = transpose ? x % groups : x / padded;
        const Index first = group / 2 * 16 + group % 2 * 2;
        const bool whole = pairs && first + 14 <= A.rows && row < A.cols && !(unit_lower && first <= row);
        unsigned hi[4], lo[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const Index K = first + 4 * q;
            float2 pair;
            if (whole) {
                pair = *reinterpret_cast<const float2*>(A.data + K + row * A.ld);
            } else if constexpr (transpose) {
                pair = {entry_of<unit_lower>(A, K, row), entry_of<unit_lower>(A, K + 1, row)};
            } else {
                pair = {entry_of<unit_lower>(A, row, K), entry_of<unit_lower>(A, row, K + 1)};
            }
            halves_of_pair(scale * pair.x, scale * pair.y, hi[q], lo[q]);
        }
        store_group(image.tile_of(row / tile_rows, group / 8), tile, static_cast<int>(row % tile_rows),
                    static_cast<int>(group % 8), hi, lo);
    }
}

struct Shared {
    alignas(tile_alignment) __half tiles[stages][2 * tile];
    Mailbox full[stages], empty[stages];
};

/// Entries of a column: the four that this thread multiplies of each 16 of a tile. Zeros where there are less than 64
/// `left`.
template <bool aligned>
__device__ __forceinline__ void load_column(const float* column, int left, float (&to)[steps][4]) {
    if (aligned && left >= tile_cols) {
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            const float4 four = __ldg(reinterpret_cast<const float4*>(column) + 4 * step);
            to[step][0] = four.x, to[step][1] = four.y, to[step][2] = four.z, to[step][3] = four.w;
        }
    } else {
        const int q = threadIdx.x % 4;
#pragma unroll
        for (int x = 0; x < 4 * steps; ++x)
            to[x / 4][x % 4] = x / 4 * 16 + 4 * q + x % 4 < left ? __ldg(column + x / 4 * 16 + x % 4) : 0.0f;
    }
}

/// By one warpgroup: tile i of `count` at `tile_at(i)`.
template <class TileAt>
__device__ __forceinline__ void copy_tiles(Shared& s, int count, TileAt tile_at) {
    keep_registers<24>();
    if (threadIdx.x != 0) return;
    for (int i = 0; i < count; ++i) {
        const int stage = i % stages, round = i / stages;
        if (round > 0) s.empty[stage].receive(round - 1);
        s.full[stage].expect(tile_bytes);
        s.full[stage].copy(s.tiles[stage], tile_at(i), tile_bytes);
    }
}

/// The block's shared memory, with its mailboxes open.
__device__ __forceinline__ Shared& open_shared() {
    auto& s = aligned_shared<Shared>();
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) {
            s.full[i].open();
            s.empty[i].open(2);
        }
    }
    __syncthreads();
    return s;
}

/// C := X B, |b_ij| <= 2√2. `largest` determined the scale of X (exponent_of_scale). With several parts each block has
/// `tiles_each` tiles of X's columns, and each part has a C of its own, one after the other. Blocks that share columns
/// of B are neighbours. `aligned`: columns of B are at multiples of 16 bytes.
template <bool aligned>
__global__ void __launch_bounds__(threads, 1)
    corrected_product_kernel(Image X, const unsigned* largest, MatrixView<const float, Cuda> B, Index tiles_each,
                             MatrixView<float, Cuda> C) {
    Shared& s = open_shared();
    const Index row_blocks = X.row_blocks(), row_block = blockIdx.x % row_blocks, first = blockIdx.z * tiles_each;
    const int count = static_cast<int>(min(tiles_each, X.col_blocks() - first));
    if (threadIdx.x < warpgroup) {
        return copy_tiles(s, count, [&](int i) { return X.tile_of(row_block, first + i); });
    }
    take_registers<240>();
    const int lane = threadIdx.x % 32, q = lane % 4, warp = threadIdx.x / 32 - warpgroup / 32;
    const Index p_first = blockIdx.x / row_blocks * p_block + 16 * warp + lane / 4, p[2] = {p_first, p_first + 8};
    const float* const from = B.data + first * tile_cols + 4 * q;
    const float* const column[2] = {from + min(p[0], B.cols - 1) * B.ld, from + min(p[1], B.cols - 1) * B.ld};
    const int rows = static_cast<int>(min(B.rows - first * tile_cols, Index(count) * tile_cols));
    constexpr float scale = 1 << halves_exponent;
    float d[64] = {}, sums[64] = {}, next[2][steps][4];
    unsigned hi[steps][4], lo[steps][4];
    const auto load = [&](int i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) load_column<aligned>(column[h] + i * tile_cols, rows - i * tile_cols, next[h]);
    };
    load(0);
    for (int i = 0; i < count; ++i) {
        if (i > 0) {
            wait_for_products();
            if (threadIdx.x % warpgroup == 0) s.empty[(i - 1) % stages].arrive();
#pragma unroll
            for (int x = 0; x < 64; ++x) sums[x] += d[x];
        }
#pragma unroll
        for (int x = 0; x < 2 * steps; ++x) {
            const int h = x % 2, step = x / 2;
            const auto& b = next[h][step];
            halves_of_pair(scale * b[0], scale * b[1], hi[step][h], lo[step][h]);
            halves_of_pair(scale * b[2], scale * b[3], hi[step][2 + h], lo[step][2 + h]);
        }
        if (i + 1 < count) load(i + 1);
        s.full[i % stages].receive(i / stages);
        const std::uint64_t X_tile = descriptor(s.tiles[i % stages]);
        begin_products();
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            const std::uint64_t X_hi = X_tile + 2 * step, X_lo = X_hi + (tile * sizeof(__half) >> 4);
            multiply(d, lo[step], X_hi, step > 0);
            multiply(d, hi[step], X_lo, 1);
            multiply(d, hi[step], X_hi, 1);
        }
        commit_products();
    }
    wait_for_products();
    const float alpha = scalbnf(1 / scale, -exponent_of_scale(largest));
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (p[h] >= C.cols) continue;
        float* const to = C.data + (Index(blockIdx.z) * C.cols + p[h]) * C.ld;
#pragma unroll
        for (int j = 0; j < tile_rows / 8; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const Index i = row_block * tile_rows + 8 * j + 2 * q + e;
                const int x = 4 * j + 2 * h + e;
                if (i < C.rows) to[i] = alpha * (sums[x] + d[x]);
            }
        }
    }
}

}  // namespace quoin::cuda::corrected
