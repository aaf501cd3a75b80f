#pragma once

// X := A Y₁⁻¹ Y₂⁻¹ … and partial Gram matrices of X in one pass, for m×n A with n <= 64.
//
// A warp owns 128 bytes of every column at a time (16 rows in f64, 32 in f32). They come into a slot of its own in
// shared memory (cp.async), one on its way while the other is worked on. The warp solves 16 rows at a time as tiles in
// registers (factor_blocks.cuh), puts X, rounded to T, back into the slot, stores it from there, and accumulates XᵀX of
// the slot in registers; no warp waits for another. At the end the block's warps add their sums, in order, into one
// part (gram_parts.cuh, units 16×8). Sums are f64 whatever T is; X is rounded once, after the last factor.
//
// Shared: 256 · k(k+3) bytes a factor, k = ⌈n/8⌉, and 8k columns of 128 bytes + 4 elements a slot (the four keep the
// fragments' lanes in different banks). Registers: 8k for X and about 2k(k+2) for the sums.
// Any ld and alignment; 16-byte accesses where A, X and their ld allow, else one element each. mn² flops a factor and
// mn² for the Gram matrix; m·n elements read and, where X is stored, written once. Bound by memory; beyond n ≈ 50 by
// the tensor cores' f64 rate.

#include <algorithm>

#include "cuda/arch/sm80_copy_async.cuh"
#include "cuda/cholesky/factor_blocks.cuh"
#include "cuda/cholesky/factors.cuh"
#include "cuda/elements/copy_rows.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/products/gram_parts.cuh"
#include "cuda/products/row_tiles.cuh"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

constexpr int narrow_warps = 4, narrow_slots = 2;

/// Rows of a slot, and its leading dimension.
template <class T>
constexpr int narrow_rows = 128 / int(sizeof(T));
template <class T>
constexpr int narrow_ld = narrow_rows<T> + 4;

/// Blocks that share a multiprocessor's registers.
__host__ __device__ constexpr int narrow_blocks(int col_tiles) {
    return col_tiles == 1 ? 8 : col_tiles == 2 ? 6 : col_tiles <= 5 ? 3 : 2;
}

/// 128 bytes of each of A's n columns into a slot, of whose rows `valid` exist. A is row-major, or column-major and
/// `aligned` for 16 bytes or not.
template <bool by_rows, class T>
__device__ __forceinline__ void load_slot(T* slot, const T* A, Index lda, int n, Index valid, bool aligned) {
    constexpr int rows = narrow_rows<T>, ld = narrow_ld<T>, width = 16 / int(sizeof(T)), cols = 32 / rows;
    const int lane = threadIdx.x % 32;
    if constexpr (by_rows) {
        copy_rows_async<32, rows>(slot, ld, A, lda, n, valid);
    } else if (aligned) {
        const int i = lane % 8 * width;
        for (int j = lane / 8; j < n; j += 4) copy_async<16>(slot + j * ld + i, A + i + j * lda, valid - i);
    } else {
        const int i = lane % rows;
        for (int j = lane / rows; j < n; j += cols)
            copy_async<sizeof(T)>(slot + j * ld + i, A + i + j * lda, valid - i);
    }
}

template <class T>
__device__ __forceinline__ void store_slot(const T* slot, T* X, Index ldx, int n, Index valid, bool aligned) {
    constexpr int rows = narrow_rows<T>, ld = narrow_ld<T>, width = 16 / int(sizeof(T)), cols = 32 / rows;
    const int lane = threadIdx.x % 32;
    if (aligned && valid >= rows) {
        const int i = lane % 8 * width;
        for (int j = lane / 8; j < n; j += 4) {
            *reinterpret_cast<int4*>(X + i + j * ldx) = *reinterpret_cast<const int4*>(slot + j * ld + i);
        }
    } else {
        const int i = lane % rows;
        for (int j = lane / rows; j < n && i < valid; j += cols) X[i + j * ldx] = slot[j * ld + i];
    }
}

/// The slot's X := X R⁻¹ for every factor R, 16 rows at a time.
template <int col_tiles, class T>
__device__ __forceinline__ void solve_slot(T* slot, const double* blocks, int factors) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int r = 0; r < narrow_rows<T>; r += 16) {
        Tile16x8 x[col_tiles];
        T* const p = slot + 2 * t * narrow_ld<T> + r + 2 * g;
#pragma unroll
        for (int j = 0; j < col_tiles; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const Pair<T> a = *reinterpret_cast<const Pair<T>*>(p + (8 * j + e) * narrow_ld<T>);
                x[j].v[e] = a.v[0];
                x[j].v[2 + e] = a.v[1];
            }
        }
        for (int f = 0; f < factors; ++f) solve_rows(x, blocks + f * factor_block_count(col_tiles) * 64);
#pragma unroll
        for (int j = 0; j < col_tiles; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                *reinterpret_cast<Pair<T>*>(p + (8 * j + e) * narrow_ld<T>) = {
                    {static_cast<T>(x[j].v[e]), static_cast<T>(x[j].v[2 + e])}};
            }
        }
    }
}

/// XᵀX of the slot into the tiles of the upper triangle.
template <int col_tiles, int tiles, class T>
__device__ __forceinline__ void add_gram(Tile16x8 (&acc)[tiles], const T* slot) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const T* p = slot + g * narrow_ld<T> + t;
#pragma unroll 1
    for (int k = 0; k < narrow_rows<T>; k += 8, p += 8) {
        Tile8x8 column[col_tiles];
#pragma unroll
        for (int j = 0; j < col_tiles; ++j) {
            column[j] = {{double(p[8 * j * narrow_ld<T>]), double(p[8 * j * narrow_ld<T> + 4])}};
        }
        int u = 0;
#pragma unroll
        for (int s = 0; s < col_tiles; s += 2) {
            Tile8x8 second = {};
            if (s + 1 < col_tiles) second = column[s + 1];
            const Tile16x8 left{{column[s].v[0], second.v[0], column[s].v[1], second.v[1]}};
#pragma unroll
            for (int c = s; c < col_tiles; ++c) multiply_add(acc[u++], left, column[c]);
        }
    }
}

template <class T, int col_tiles, bool by_rows>
__global__ void __launch_bounds__(narrow_warps * 32, narrow_blocks(col_tiles))
    narrow_kernel(Index m, int n, const T* A, Index lda, const __grid_constant__ Factors factors, T* X, Index ldx,
                  double* parts, const Certificate* certificate) {
    extern __shared__ __align__(16) unsigned char shared[];
    if (certificate && certificate->refused()) return;
    constexpr int rows = narrow_rows<T>, slot_size = 8 * col_tiles * narrow_ld<T>;
    constexpr int factor_size = factor_block_count(col_tiles) * 64, tiles = unit_count(col_tiles, fused_height);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    double* const blocks = reinterpret_cast<double*>(shared);
    double* const exchange = blocks + factors.count * factor_size;
    T* const slots = reinterpret_cast<T*>(exchange) + warp * (narrow_slots * slot_size);
    const bool aligned_a = aligned_16(A, lda), aligned_x = aligned_16(X, ldx);
    const Index step = Index(gridDim.x) * narrow_warps * rows;
    Index row = (Index(blockIdx.x) * narrow_warps + warp) * rows;

    for (int s = 0; s < narrow_slots; ++s) {
        for (int e = n * narrow_ld<T> + lane; e < slot_size; e += 32) slots[s * slot_size + e] = T(0);
    }
    const auto load = [&](Index from, int slot) {
        if (from < m)
            load_slot<by_rows>(slots + slot * slot_size, A + from * (by_rows ? lda : 1), lda, n, m - from, aligned_a);
        commit_copies();
    };
    for (int s = 0; s < narrow_slots - 1; ++s) load(row + s * step, s);
    for (int f = 0; f < factors.count; ++f) {
        load_factor<col_tiles, narrow_warps * 32>(blocks + f * factor_size, n, factors.data[f], factors.ld[f]);
    }

    Tile16x8 acc[tiles] = {};
    for (int s = 0; row < m; row += step, s = (s + 1) % narrow_slots) {
        T* const slot = slots + s * slot_size;
        wait_for_copies<narrow_slots - 2>();
        __syncwarp();
        load(row + (narrow_slots - 1) * step, (s + narrow_slots - 1) % narrow_slots);
        if (factors.count > 0) {
            solve_slot<col_tiles>(slot, blocks, factors.count);
            __syncwarp();
        }
        if (X) store_slot(slot, X + row, ldx, n, m - row, aligned_x);
        if (parts) add_gram<col_tiles>(acc, slot);
    }
    wait_for_copies<0>();
    if (!parts) return;

    // part := the warps' sums, warp 0 first
    for (int w = 0; w < narrow_warps; ++w) {
        __syncthreads();
        if (warp != w) continue;
#pragma unroll
        for (int e = 0; e < 4 * tiles; ++e) {
            double* const p = exchange + e * 32 + lane;
            *p = (w == 0 ? 0.0 : *p) + acc[e / 4].v[e % 4];
        }
    }
    __syncthreads();
    double* const part = parts + blockIdx.x * part_size(col_tiles, fused_height);
    for (int e = threadIdx.x; e < tiles * 128; e += narrow_warps * 32) part[e] = exchange[e];
}

/// Blocks of a launch, and so parts: fixed by the shape and the device.
template <class T>
int narrow_grid(Index m, int n, int multiprocessors) {
    const int col_tiles = ceil_div(n, 8);
    const Index rows = Index(narrow_warps) * narrow_rows<T>;
    return static_cast<int>(std::min<Index>(Index(multiprocessors) * narrow_blocks(col_tiles), ceil_div(m, rows)));
}

/// m > 0, 0 < n <= 64, at most `max_factors` factors; X, parts and certificate may each be null.
template <class T>
void narrow(Context<Cuda>& ctx, InputView<T, Cuda> A, const Factors& factors, MatrixView<T, Cuda> X, double* parts,
            const Certificate* certificate) {
    const Index m = A.rows;
    const int n = static_cast<int>(A.cols);
    with_constant<1, narrow_cols / 8>(ceil_div(n, 8), [&](auto tiles) {
        constexpr int col_tiles = tiles;
        constexpr int slot_bytes = narrow_warps * narrow_slots * 8 * col_tiles * narrow_ld<T> * int(sizeof(T));
        static_assert(unit_count(col_tiles, fused_height) * 128 * int(sizeof(double)) <= slot_bytes);
        const std::size_t bytes = sizeof(double) * 64 * factors.count * factor_block_count(col_tiles) + slot_bytes;
        const auto grid = static_cast<unsigned>(narrow_grid<T>(m, n, ctx.state().kernels.multiprocessors));
        const auto kernel = A.by_rows ? narrow_kernel<T, col_tiles, true> : narrow_kernel<T, col_tiles, false>;
        launch(ctx.stream(), kernel, {grid, narrow_warps * 32, bytes}, m, n, A.data, A.ld, factors, X.data, X.ld, parts,
               certificate);
    });
}

}  // namespace quoin::cuda
