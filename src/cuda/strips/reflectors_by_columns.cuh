#pragma once

// The reflectors of a strip column by column: a dot product, a barrier, a square root and a division for each.

#include "cuda/strips/layout.cuh"

namespace quoin::cuda::strips {

/// Reflectors of the strip's first `columns` columns, whose diagonal starts in tile `first`, one of slot From or a
/// later one; zeros above that. The strip then has V below the diagonal and zeros from there up. Row-major in upper
/// triangles: VᵀV in s.part[1], but for its diagonal, R in s.part[2]; tau in s.tau.
template <class S, int From>
__device__ __forceinline__ void factor_panel(S& strip, StripShared<S>& s, Cluster<S>& cluster, int first, int columns) {
    using T = typename S::Scalar;
    constexpr int Width = S::Width, R = S::R, H = S::H;
    const StripThread<S> me;
    const int g = me.g, q = me.q, lane = me.lane % Width;
    unrolled<H>([&](auto hj) {
        const int row_tile = first + hj, row_slot = row_tile / S::all_warps;
        const bool block_has_row = me.has(row_tile), has_row = block_has_row && row_tile % S::warps == me.warp;
        for (int jj = 0; jj < 8 && 8 * hj + jj < columns; ++jj) {
            const int j = 8 * hj + jj;
            auto& dots = s.dots[j % 2];
            T* const row = s.row[j % 2];
            if (has_row) {
                // row j leaves the strip
                const bool mine = q == jj / 2, odd = jj % 2;
#pragma unroll
                for (int r = From; r < R; ++r) {
                    if (r != row_slot) continue;
#pragma unroll
                    for (int h = 0; h < H; ++h) {
                        T(&c)[2] = strip.c[r][h];
                        if (mine) row[me.col(h)] = odd ? c[1] : c[0];
                        const bool gone = mine && (h > hj || (h == hj && g >= jj));
                        c[0] = gone && !odd ? T(0) : c[0];
                        c[1] = gone && odd ? T(0) : c[1];
                    }
                }
            }
            // x = column j below its diagonal, for every column; s_l = xᵀ a_l
            T x[R][2];
            const auto find_dots = [&](T* row_too) {
                T part[H] = {};
#pragma unroll
                for (int r = From; r < R; ++r) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        x[r][half] = __shfl_sync(~0u, strip.c[r][hj][half], 4 * jj + q);
#pragma unroll
                        for (int h = 0; h < H; ++h) part[h] = fma(x[r][half], strip.c[r][h][half], part[h]);
                    }
                }
                sum_and_store_dots<S>(part, dots, me);
                cluster.join_dots(dots, Plus(), row_too, block_has_row);
            };
            find_dots(row);
            T alpha = row[j], below = sum_of_warps<S::warps>(dots[j]), unscaled = 1;
            if (fma(alpha, alpha, below) < least_squares_kept<T>()) {
                // 2^-e x in the place of x, where its squares lose digits
                T largest = abs(alpha);
#pragma unroll
                for (int r = From; r < R; ++r) largest = max(largest, max(abs(x[r][0]), abs(x[r][1])));
                largest = over_rows(largest, Larger());
                auto& others = s.dots[(j + 1) % 2];
                if (me.lane < S::Width) others[me.lane][me.warp] = largest;
                cluster.join_dots(others, Larger());
                largest = abs(alpha);
                for (int w = 0; w < S::warps; ++w) largest = max(largest, others[0][w]);
                const int e = largest > 0 ? ilogb(largest) : 0;
#pragma unroll
                for (int r = From; r < R; ++r) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        if (g == jj) strip.c[r][hj][half] = scalbn(strip.c[r][hj][half], -e);
                    }
                }
                find_dots(nullptr);
                alpha = scalbn(alpha, -e);
                below = sum_of_warps<S::warps>(dots[j]);
                unscaled = scalbn(T(1), e);
            }
            const Reflector<T> reflector(alpha, below);
            // z_l = vᵀa_l: the columns on the right lose τ z_l v; those on the left give VᵀV
            const T own_row = row[lane], z = fma(reflector.scale, sum_of_warps<S::warps>(dots[lane]), own_row),
                    loss = reflector.tau * z,
                    factor = lane == j  ? reflector.scale
                             : lane > j ? -loss * reflector.scale
                                        : T(0);
#pragma unroll
            for (int h = hj; h < H; ++h) {
                const T f = __shfl_sync(~0u, factor, me.col(h));
#pragma unroll
                for (int r = From; r < R; ++r) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        T& c = strip.c[r][h][half];
                        c = fma(f, x[r][half], h == hj && g == jj ? T(0) : c);
                    }
                }
            }
            if (me.warp == j % S::warps && me.lane == lane) {
                if (lane < j) {
                    s.part[1][lane * Width + j] = z;
                } else {
                    s.part[2][j * Width + lane] = lane > j ? own_row - loss : reflector.beta * unscaled;
                }
                if (lane == j) s.tau[j] = reflector.tau;
            }
        }
    });
}
/// factor_panel, without the slots whose tiles are all above `first`.
template <class S>
__device__ __forceinline__ void factor_active_rows(S& C, StripShared<S>& s, Cluster<S>& cluster, int first,
                                                   int columns) {
    constexpr int step = S::R > 8 ? S::R / 2 : S::R > 4 ? 2 : 1;
    for (int x = threadIdx.x; x < S::Width * S::Width; x += S::threads) s.part[1][x] = s.part[2][x] = 0;
    if (threadIdx.x < S::Width) s.tau[threadIdx.x] = 0;
    const int from = first / S::all_warps / step;
    unrolled<S::R / step>([&](auto x) {
        if (from == x) factor_panel<S, x * step>(C, s, cluster, first, columns);
    });
}

}  // namespace quoin::cuda::strips
