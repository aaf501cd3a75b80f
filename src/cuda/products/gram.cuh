#pragma once

// Partial Gram matrices of a tall A (m×n, 64 < n <= 192, or 256 in f32): part_b = Σ A_sᵀA_s over the slabs s of block
// b, upper triangle; and of a tall A and B (m×n and m×p): part_b = Σ A_sᵀB_s, all of it.
//
//         n                       A goes through shared memory in slabs of 32 rows, block b taking slabs b, b + grid, …,
//      ┌──────┐ 32  slab 0        three deep (cp.async). 8 or 12 warps share the accumulators, all in registers: the
//   A  ├──────┤     slab 1        units of gram_parts.cuh (32×8, strip by strip) are dealt out consecutively, `units`
//      ├──────┤      …            to a warp, so that a warp re-reads its 32 columns of the left operand only where a
//      └──────┘                   strip ends. B stands in a slab to the right of A's columns; what registers do not
//                                 hold of its p columns, or of G, is for other blocks, which read A once more.
//
// f32 is widened to f64 on its way to the tensor cores: products are exact and sums carry f64's u, at f64's rate.
//
// Shared: 3 · 36 · 32⌈n/32⌉ elements (columns padded to 36 rows: lanes (g, t) of a fragment fall into different banks;
// columns beyond n are zero): 166 KB for n = 192 in f64. Registers: 16 · units + about 60, at most 168.
// Any ld and alignment; 16-byte copies where A and ld allow, else one element each. Rows beyond m are filled with
// zeros. mn² flops (the diagonal strips bring 16% more for n = 192), m·n elements read once. Bound by the tensor cores'
// f64 rate from n ≈ 50 (f32: 25) on; 1 000 000×192 on an H100: 0.90 ms in f32 and f64, 48 TFLOP/s of the 64 those
// products reach.

#include <algorithm>
#include <type_traits>

#include "cuda/arch/sm80_copy_async.cuh"
#include "cuda/elements/copy_rows.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/products/gram_parts.cuh"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda {

constexpr int gram_rows = 32, gram_ld = gram_rows + 4, gram_stages = 3, gram_height = 32;
/// Warps of a block, a multiple of four for the four schedulers. A warp's registers hold up to 7 units. n = 128 has 40
/// units: five for each of two warps of a scheduler, or four for each of three. f32 is widened on its way, and needs
/// the third warp more.
constexpr int gram_warps = 12, few_gram_warps = 8, max_units_of_warp = 7;
template <class T>
constexpr bool takes_few_warps(int units) {
    const int few = ceil_div(units, few_gram_warps), many = ceil_div(units, gram_warps);
    constexpr int cost = std::is_same_v<T, float> ? 5 : 4;
    return few <= max_units_of_warp && few * few_gram_warps * cost < many * gram_warps * 4;
}

/// The operands: A (m×n) and B (m×p), or A alone. Block (x, y) multiplies `width` columns of B, a multiple of 8, from y
/// · width on.
template <class T>
struct GramOperands {
    const T* A;
    Index lda;
    int n;
    const T* B = nullptr;
    Index ldb = 0;
    int p = 0, width = 0;
};

/// Rows [row, row + 32) of A into a stage, `bytes` at a time.
template <int warps, int bytes, class T>
__device__ __forceinline__ void load_slab(T* stage, const T* A, Index m, int n, Index lda, Index row) {
    constexpr int width = bytes / int(sizeof(T)), pieces = gram_rows / width;
    for (int p = threadIdx.x; p < n * pieces; p += warps * 32) {
        const int j = p / pieces, i = p % pieces * width;
        copy_async<bytes>(stage + j * gram_ld + i, A + row + i + j * lda, m - (row + i));
    }
}
template <int warps, class T>
__device__ __forceinline__ void load_slab(bool aligned, T* stage, const T* A, Index m, int n, Index lda, Index row) {
    if (aligned)
        load_slab<warps, 16>(stage, A, m, n, lda, row);
    else
        load_slab<warps, sizeof(T)>(stage, A, m, n, lda, row);
}

/// Columns [first, end) of a stage := 0.
template <int warps, class T>
__device__ __forceinline__ void clear_columns(T* stage, int first, int end) {
    for (int e = first * gram_ld + threadIdx.x; e < end * gram_ld; e += warps * 32) stage[e] = T(0);
}

template <class T, int units, int warps, bool cross, bool by_rows>
__global__ void __launch_bounds__(warps * 32, 1)
    gram_kernel(Index m, GramOperands<T> of, double* parts, bool accumulate) {
    extern __shared__ __align__(16) unsigned char shared[];
    T* const stages = reinterpret_cast<T*>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // B's columns follow the columns of A's strips
    const int strip_cols_of_a = ceil_div(of.n, gram_height) * gram_height,
              first_right = cross ? strip_cols_of_a / 8 : 0;
    const int col_tiles = cross ? first_right + of.width / 8 : ceil_div(of.n, 8);
    const int stage_size = gram_ld * (strip_cols_of_a + (cross ? of.width : 0));
    const Index slabs = ceil_div(m, Index(gram_rows));
    const int first_col = cross ? static_cast<int>(blockIdx.y) * of.width : 0;
    const T* const B = cross ? of.B + first_col * of.ldb : nullptr;
    const int cols_of_b = cross ? min(of.width, of.p - first_col) : 0;
    const bool aligned_a = aligned_16(of.A, of.lda), aligned_b = cross && aligned_16(B, of.ldb);

    const auto load = [&](Index slab, int stage) {
        if (slab < slabs) {
            T* const to = stages + stage * stage_size;
            const Index row = slab * gram_rows;
            if constexpr (by_rows)
                copy_rows_async<warps * 32, gram_rows>(to, gram_ld, of.A + row * of.lda, of.lda, of.n, m - row);
            else
                load_slab<warps>(aligned_a, to, of.A, m, of.n, of.lda, row);
            if constexpr (cross) {
                load_slab<warps>(aligned_b, to + strip_cols_of_a * gram_ld, B, m, cols_of_b, of.ldb, slab * gram_rows);
            }
        }
        commit_copies();
    };

    for (int stage = 0; stage < gram_stages; ++stage) {
        clear_columns<warps>(stages + stage * stage_size, of.n, strip_cols_of_a);
        if constexpr (cross) {
            clear_columns<warps>(stages + stage * stage_size, strip_cols_of_a + cols_of_b, strip_cols_of_a + of.width);
        }
    }
    for (int stage = 0; stage < gram_stages - 1; ++stage) load(blockIdx.x + Index(stage) * gridDim.x, stage);

    // the warp's first unit (s0, c0) and how many it has; a warp that has none works on (0, first of strip 0), in vain
    const int count = cross ? first_right / 4 * (of.width / 8) : unit_count(col_tiles, gram_height);
    const auto first_of_strip = [&](int s) { return cross ? first_right : 4 * s; };
    const int first = ((cross ? 0 : blockIdx.y * warps) + warp) * units, mine = max(0, min(units, count - first));
    int s0 = 0, c0 = mine > 0 ? first : 0;
    for (int in_strip = col_tiles - first_right; in_strip > 0 && c0 >= in_strip; in_strip -= cross ? 0 : 4) {
        c0 -= in_strip;
        ++s0;
    }
    c0 += first_of_strip(s0);

    Tile16x8 acc[units][2] = {};
    int stage = 0;
    for (Index slab = blockIdx.x; slab < slabs; slab += gridDim.x) {
        wait_for_copies<gram_stages - 2>();
        __syncthreads();
        load(slab + Index(gram_stages - 1) * gridDim.x, (stage + gram_stages - 1) % gram_stages);
        const T* S = stages + stage * stage_size + g * gram_ld + t;
#pragma unroll 1
        for (int k = 0; k < gram_rows; k += 8, S += 8) {
            int s = s0, c = c0;
            Tile16x8 left[2];
            const auto load_left = [&] {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const T* const p = S + (s * 32 + h * 16) * gram_ld;
                    left[h] = {{double(p[0]), double(p[8 * gram_ld]), double(p[4]), double(p[8 * gram_ld + 4])}};
                }
            };
            const auto load_right = [&] {
                const T* const p = S + c * 8 * gram_ld;
                return Tile8x8{{double(p[0]), double(p[4])}};
            };
            load_left();
            Tile8x8 right = load_right();
#pragma unroll
            for (int u = 0; u < units; ++u) {
                Tile8x8 next = right;
                const bool strip_ends = ++c == col_tiles;
                if (u + 1 < units) {
                    // a warp that is dealt fewer units repeats its last one, in vain
                    c = u + 1 >= mine ? c - 1 : strip_ends ? first_of_strip(s + 1) : c;
                    next = load_right();
                }
                // G(s, c) += A(:, s)ᵀ A(:, c), or A(:, s)ᵀ B(:, c)
                multiply_add(acc[u][0], left[0], right);
                multiply_add(acc[u][1], left[1], right);
                if (u + 1 < units && u + 1 < mine && strip_ends) {
                    ++s;
                    load_left();
                }
                right = next;
            }
        }
        stage = (stage + 1) % gram_stages;
    }

    double* const part = parts +
                         ((cross ? Index(blockIdx.y) * gridDim.x : 0) + blockIdx.x) * count * (gram_height * 8) +
                         first * (gram_height * 8) + lane;
#pragma unroll
    for (int u = 0; u < units; ++u) {
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            double* const p = part + u * 256 + e * 32;
            if (u < mine) *p = (accumulate ? *p : 0.0) + acc[u][e / 4].v[e % 4];
        }
    }
}

/// Units that a block's registers hold.
constexpr int max_gram_units = max_units_of_warp * gram_warps;

template <class T, int warps, bool cross, bool by_rows = false>
void launch_gram(Context<Cuda>& ctx, Index m, const GramOperands<T>& of, int unit_count, dim3 grid, int stage_cols,
                 double* parts, bool accumulate) {
    constexpr int least = cross ? 1 : 2;  // A by itself has more than 64 columns
    const std::size_t bytes = sizeof(T) * gram_stages * gram_ld * stage_cols;
    with_constant<1, max_units_of_warp>(ceil_div(unit_count, warps), [&](auto count) {
        constexpr int units = count < least ? least : count;
        launch(ctx.stream(), gram_kernel<T, units, warps, cross, by_rows>, {grid, warps * 32, bytes}, m, of, parts,
               accumulate);
    });
}

/// How AᵀA of n columns is cut: into `groups` of units, each `blocks` blocks, which share the slabs.
struct GramGrid {
    int units, groups, blocks;
    GramGrid(Index m, int n, int multiprocessors)
        : units(unit_count(ceil_div(n, 8), gram_height)), groups(ceil_div(units, max_gram_units)) {
        const Index slabs = ceil_div(m, Index(gram_rows));
        blocks = static_cast<int>(std::max<Index>(1, std::min<Index>(multiprocessors / groups, slabs)));
    }
    /// Doubles of all parts.
    Index parts_size() const { return Index(blocks) * units * gram_height * 8; }
};

/// part_b (+)= the Gram matrix of the slabs of blocks (b, ·), b < grid.blocks. 64 < n <= 192, or 256 in f32.
template <class T>
void gram(Context<Cuda>& ctx, InputView<T, Cuda> A, double* parts, const GramGrid& grid, bool accumulate) {
    const int n = static_cast<int>(A.cols), units = ceil_div(grid.units, grid.groups);
    const auto launch = [&]<int warps>() {
        const auto of_order = A.by_rows ? launch_gram<T, warps, false, true> : launch_gram<T, warps, false, false>;
        of_order(ctx, A.rows, {A.data, A.ld, n}, units, dim3(grid.blocks, grid.groups), ceil_div(n, 32) * 32, parts,
                 accumulate);
    };
    if (takes_few_warps<T>(units)) {
        launch.template operator()<few_gram_warps>();
    } else {
        launch.template operator()<gram_warps>();
    }
}

/// How AᵀB of n and p columns is cut: into `groups` of `width` columns of B, each `blocks` blocks, which share the
/// slabs.
struct CrossGrid {
    int strips, width, groups, blocks;
    /// 0 < n <= 256, 0 < p <= 256
    CrossGrid(Index m, int n, int p, int multiprocessors) : strips(ceil_div(n, gram_height)) {
        const int tiles = ceil_div(p, 8), max_tiles = max_gram_units / strips;
        groups = ceil_div(tiles, max_tiles);
        width = 8 * ceil_div(tiles, groups);
        groups = ceil_div(tiles, width / 8);
        const Index slabs = ceil_div(m, Index(gram_rows));
        blocks = static_cast<int>(std::max<Index>(1, std::min<Index>(multiprocessors / groups, slabs)));
    }
    /// Doubles of all parts.
    Index parts_size() const { return Index(groups) * blocks * strips * width * gram_height; }
};

/// The parts of AᵀB, of f32: group after group, each `blocks` parts.
inline void gram_of_two(Context<Cuda>& ctx, MatrixView<const float, Cuda> A, MatrixView<const float, Cuda> B,
                        const CrossGrid& grid, double* parts) {
    launch_gram<float, gram_warps, true>(
        ctx, A.rows, {A.data, A.ld, static_cast<int>(A.cols), B.data, B.ld, static_cast<int>(B.cols), grid.width},
        grid.strips * (grid.width / 8), dim3(grid.blocks, grid.groups), grid.strips * gram_height + grid.width, parts,
        false);
}

}  // namespace quoin::cuda
