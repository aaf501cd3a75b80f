#pragma once

// X := A R⁻¹ for a tall A (m×n, 64 < n <= 192) and an upper triangular R, or A P R⁻¹; X may be A.
//
// A warp owns 16 rows at a time, whole, in registers (4 doubles a lane for every 8 columns): rows are independent, so
// warps exchange no data. R lies in shared memory (factor_blocks.cuh: the layout and the error bound). Registers leave
// no room for two tiles a warp, but a column that is solved is needed no more: it is stored, and the same column of the
// next tile loaded in its place, so that memory and tensor cores work at once. 1 000 000×192 on an H200: 1.05 ms in f64
// and 1.01 in f32; 1.26 and 1.11 where a tile was loaded whole, solved, and stored.
//
// Shared: 256 · k(k+3) bytes, k = ⌈n/8⌉ rounded up to even: 162 KB for n = 192. Registers: 8k + about 60.
// Any ld and alignment: a lane reads numbers one by one, as the tensor cores want them. mn² flops in f64 whatever T is;
// m·n elements read, m·n written. Bound by memory and by the tensor cores' f64 rate about alike for n = 192 in f64, by
// the latter in f32 from n ≈ 120 on.

#include <algorithm>

#include "cuda/arch/sm70_registers.cuh"
#include "cuda/cholesky/factor_blocks.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

/// Warps of a block: two for each scheduler. Three, of up to 128 columns, would spill.
constexpr int solve_warps = 8;

/// The entries of a 16×8 tile that lane 4g + t holds: rows g and g + 8 of columns 2t and 2t + 1, in the order of a
/// Tile16x8.
template <class T>
struct LaneEntries {
    T v[4];
    __device__ __forceinline__ Tile16x8 widened() const {
        return {{double(v[0]), double(v[1]), double(v[2]), double(v[3])}};
    }
};
/// From a lane's first entries of two columns, of which `left` exist; zeros for others, and for rows from `valid` on
/// unless `whole`. column(0) and column(1) have these entries.
template <bool whole, class T, class Column>
__device__ __forceinline__ LaneEntries<T> load_entries(Column column, int left, Index valid) {
    const int g = threadIdx.x % 32 / 4;
    LaneEntries<T> a = {};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        if (left > e % 2 && (whole || g + e / 2 * 8 < valid)) a.v[e] = column(e % 2)[e / 2 * 8];
    }
    return a;
}
template <bool whole, class T>
__device__ __forceinline__ void store_entries(const Tile16x8& X, T* p, Index ldx, int left, Index valid) {
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        if (left > e % 2 && (whole || g + e / 2 * 8 < valid)) p[e % 2 * ldx + e / 2 * 8] = static_cast<T>(X.v[e]);
    }
}

template <class T, int col_tiles, bool permuted>
__global__ void __launch_bounds__(solve_warps * 32, 1)
    solve_right_kernel(Index m, int n, const T* A, Index lda, const Index* order, const double* __restrict__ R,
                       Index ldr, T* X, Index ldx, const Certificate* certificate, double others_condition) {
    extern __shared__ __align__(16) unsigned char shared[];
    if (certificate && (certificate->refused() || certificate->factor_has(others_condition))) return;
    double* const blocks = reinterpret_cast<double*>(shared);
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const Index step = Index(gridDim.x) * solve_warps * 16;
    // neighbouring rows to one block where there are many, to as many blocks as possible where there are few
    Index row = (m > step ? Index(blockIdx.x) * solve_warps + warp : Index(warp) * gridDim.x + blockIdx.x) * 16;
    A += g + (permuted ? 0 : 2 * t * lda);
    X += g + 2 * t * ldx;
    // Without an order p is the lane's first entry of tile j. With one, p is the entry of its row in column 0, and
    // `places` is the order from the lane's first column on.
    const auto load = [&]<bool whole>(const T* p, const Index* places, int j, int left, Index valid) {
        const auto column = [&](int e) { return p + (permuted ? places[8 * j + e] : e) * lda; };
        return load_entries<whole, T>(column, left, valid);
    };
    order += 2 * t;
    LaneEntries<T> next[col_tiles];
#pragma unroll
    for (int j = 0; j < col_tiles; ++j)
        next[j] = load.template operator()<false>(A + row + (permuted ? 0 : 8 * j * lda), order, j, n - 2 * t - 8 * j,
                                                  m - row);
    load_factor<col_tiles, solve_warps * 32>(blocks, n, R, ldr);
    // this tile, and the next as columns of this one are done; `whole`: both exist whole
    const auto solve_tile = [&]<bool whole>() {
        Tile16x8 tile[col_tiles];
        const T* p = A + row + step;
        T* q = X + row;
        const Index* places = order;
        // X may be A: every lane has read its entries of the tile before one is overwritten
        if (permuted) __syncwarp();
        const auto begin = [&](int j) { tile[j] = next[j].widened(); };
        const auto end = [&](int i) {
            const int left = i < col_tiles - 2 ? 2 : n - 2 * t - 8 * i;
            store_entries<whole>(tile[i], q, ldx, left, m - row);
            next[i] = load.template operator()<whole>(p, places, i, left, m - row - step);
            p += permuted ? 0 : 8 * lda;
            q += 8 * ldx;
            keep_as_pointers(p, q);
            if (permuted) keep_as_pointers(places, q);
        };
        solve_rows(tile, blocks, begin, end);
        row += step;
    };
    while (row + step + 16 <= m) solve_tile.template operator()<true>();
    while (row < m) solve_tile.template operator()<false>();
}

/// P is `order`, or I if that is null. X is left as it is where the certificate (null: none) is refused, or its factor
/// has at most the condition up to which X is made by another kernel (−1: none).
template <class T>
void solve_right(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, const Index* order, MatrixView<const double, Cuda> R,
                 MatrixView<T, Cuda> X, const Certificate* certificate, double others_condition) {
    const int n = static_cast<int>(A.cols);
    const auto blocks =
        static_cast<unsigned>(std::min<Index>(ctx.state().kernels.multiprocessors, ceil_div(A.rows, Index(16))));
    with_constant<3, 12>(ceil_div(n, 16), [&](auto pairs) {
        constexpr int col_tiles = 2 * pairs;
        constexpr std::size_t bytes = sizeof(double) * 64 * factor_block_count(col_tiles);
        launch(ctx.stream(), order ? solve_right_kernel<T, col_tiles, true> : solve_right_kernel<T, col_tiles, false>,
               {blocks, solve_warps * 32, bytes}, A.rows, n, A.data, A.ld, order, R.data, R.ld, X.data, X.ld,
               certificate, others_condition);
    });
}

}  // namespace quoin::cuda
