#pragma once

// G + shift diag(G) = RᵀR for an n×n Gram matrix, n <= 192, what its step demands of it, and ‖(RD)⁻¹‖_F, by one block.
//
// G is eliminated by rows of 8, R⁻ᵀ built in the places that become free. Step k turns the cross of row block k and column
// block k into a panel P (8×n) and subtracts a product of rank 8 from what lies right of it:
//
//            k                  P(:, x) := R_kk⁻ᵀ · G_kx (x right of k), · I (x = k), · (R⁻¹)_xkᵀ (x left of k)
//      ┌───┬───┬───────┐
//      │   │ W │   W   │        right of k it is R's row block, up to k it is R⁻ᵀ's:
//      │   ├───┼───────┤ k      D(i, j) := D(i, j) − P(:, i)ᵀP(:, j),   j > k, i <= j, D(k, ·) := 0 before
//      │   │   │   G   │
//      └───┴───┴───────┘        G's Schur complement below k; above, the part of R⁻¹ that is known.
//
// The upper triangle is held in registers, as 16×8 tiles (dmma.cuh) of 16 warps, up to 10 a warp, dealt out consecutively.
// A 17th warp factors the diagonal blocks, every lane the same one in its registers, while the others finish the update
// of the step before: they update the next cross first. One thread a column solves for P. Where ‖(RD)⁻¹‖ is not
// demanded R⁻ᵀ is not built.
//
//   tile warps      P ─ solve ─ P' ─ update cross ─ P ─ update rest ─┐ solve …
//   diagonal warp                                    └─ factor ─ R_kk ┘
//
// Shared: 3 panels of 12 KB (P, and P' of this step and the last, which late warps still read), 16-byte units permuted so
// that a thread may read its column and a warp its fragments without bank conflicts. Registers: 8 a tile and about 40.
// n³/3 flops for R and as many for R⁻¹; n² numbers read, n² written. Bound by latency: 8·⌈n/8⌉ reciprocal square roots
// one after the other.

#include "cuda/kernels/dmma.cuh"
#include "primitives.hpp"

namespace quoin::cuda {

constexpr int factor_max_cols = 192, tile_warps = 16, tile_threads = tile_warps * 32;
constexpr int factor_threads = tile_threads + 32;

struct FactorShared {
    double panel[factor_max_cols * 8];
    double solved[2][factor_max_cols * 8];
    double R[8][8], reciprocal[8];  ///< R_kk by rows, and 1/r_jj
    double diagonal[factor_max_cols];
    double sums[tile_warps][2];
    int unusable, failed;
};

/// The 16-byte unit q of column x of a panel: rows 2q and 2q + 1.
__device__ __forceinline__ double2* unit_of(double* panel, int x, int q) {
    return reinterpret_cast<double2*>(panel) + x * 4 + (q ^ (x / 2 % 4));
}

/// Named barriers of the block.
constexpr int cross_ready = 1, block_factored = 2, panel_solved = 3;
template <int barrier, int threads>
__device__ __forceinline__ void barrier_sync() {
    asm volatile("bar.sync %0, %1;" ::"n"(barrier), "n"(threads) : "memory");
}
template <int barrier, int threads>
__device__ __forceinline__ void barrier_arrive() {
    asm volatile("bar.arrive %0, %1;" ::"n"(barrier), "n"(threads) : "memory");
}

/// A warp's tiles: `count` of them from (strip, col) on, strip after strip of 16 rows, each from its diagonal.
template <int units>
struct TileRun {
    int strip = 0, col = 0, count, col_tiles;
    Tile16x8 D[units];

    __device__ TileRun(int n, int warp) : col_tiles(ceil_div(n, 8)) {
        const int first = warp * units;
        count = max(0, min(units, unit_count(col_tiles, 16) - first));
        if (count == 0) return;
        col = first;
        for (int in_strip = col_tiles; col >= in_strip; in_strip -= 2) {
            col -= in_strip;
            ++strip;
        }
        col += 2 * strip;
    }
    /// f(tile, strip, col) for each.
    template <class F>
    __device__ __forceinline__ void for_each(F f) {
        int s = strip, c = col;
#pragma unroll
        for (int u = 0; u < units; ++u) {
            if (u < count) f(D[u], s, c);
            if (++c == col_tiles) c = 2 * ++s;
        }
    }
};

/// Whether a tile holds a piece of the cross of block k.
__device__ __forceinline__ bool in_cross(int strip, int col, int k) {
    return (strip == k / 2 && col >= k) || (col == k && 2 * strip < k);
}

/// The tile's piece of cross k into the panel: the row block as it is, the column block above it transposed.
__device__ __forceinline__ void publish(double* panel, const Tile16x8& D, int strip, int col, int k) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const double first = D.v[2 * h], second = D.v[2 * h + 1];
        const int block = 2 * strip + h;
        if (block == k && col >= k) {
            for (int e = 0; e < 2; ++e) {
                double2* const unit = unit_of(panel, 8 * col + 2 * t + e, g / 2);
                reinterpret_cast<double*>(unit)[g % 2] = e ? second : first;
            }
        } else if (block < k && col == k) {
            *unit_of(panel, 8 * block + g, t) = {first, second};
        }
    }
}

/// R_kk of the 8×8 block at the panel's columns 8k …; −1, or the first column without a positive, finite pivot.
__device__ __forceinline__ int factor_block(FactorShared& shared, int k) {
    double r[8][8], reciprocal[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
        for (int q = 0; 2 * q <= j; ++q) {
            const double2 pair = *unit_of(shared.panel, 8 * k + j, q);
            r[2 * q][j] = pair.x;
            if (2 * q + 1 <= j) r[2 * q + 1][j] = pair.y;
        }
    }
    int failed = -1;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const double pivot = r[i][i];
        if (failed < 0 && !(pivot > 0 && pivot <= 1.7976931348623157e308)) failed = 8 * k + i;
        reciprocal[i] = rsqrt(pivot);
#pragma unroll
        for (int j = i; j < 8; ++j) r[i][j] *= reciprocal[i];
#pragma unroll
        for (int l = i + 1; l < 8; ++l) {
#pragma unroll
            for (int j = l; j < 8; ++j) r[l][j] -= r[i][l] * r[i][j];
        }
    }
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            shared.reciprocal[i] = reciprocal[i];
#pragma unroll
            for (int j = 0; j < 8; ++j) shared.R[i][j] = j < i ? 0.0 : r[i][j];
        }
        shared.failed = failed;
    }
    return failed;
}

/// x := R_kk⁻ᵀ x.
__device__ __forceinline__ void solve_column(double (&x)[8], const FactorShared& shared) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        x[i] *= shared.reciprocal[i];
#pragma unroll
        for (int j = i + 1; j < 8; ++j) x[j] -= shared.R[i][j] * x[i];
    }
}

/// The sum of `value` over the tile warps, in a fixed order; every thread of the block calls it.
__device__ __forceinline__ double tile_sum(FactorShared& shared, int slot, double value) {
    const int warp = threadIdx.x / 32;
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    if (warp < tile_warps && threadIdx.x % 32 == 0) shared.sums[warp][slot] = value;
    __syncthreads();
    double sum = 0;
    for (int w = 0; w < tile_warps; ++w) sum += shared.sums[w][slot];
    return sum;
}

template <int units>
__global__ void __launch_bounds__(factor_threads, 1)
    factor_gram_kernel(int n, const double* G, Index ldg, double low, double high,
                       const __grid_constant__ GramDemands demands, double* R, Index ldr, Verdict* verdict) {
    __shared__ __align__(16) FactorShared shared;
    if (verdict->closed()) return;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int steps = ceil_div(n, 8);
    const bool tiles_here = warp < tile_warps, inverse = demands.asks_condition();
    TileRun<units> tiles(n, tiles_here ? warp : tile_warps);
    if (threadIdx.x == 0) {
        shared.unusable = n;
        shared.failed = -1;
    }
    __syncthreads();

    // G, continued by the identity beyond n
    double square = 0, trace = 0;
    tiles.for_each([&](Tile16x8& D, int strip, int col) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int i = 16 * strip + g + e / 2 * 8, j = 8 * col + 2 * t + e % 2;
            D.v[e] = i == j ? 1.0 : 0.0;
            if (i > j || j >= n) continue;
            const double a = G[i + j * ldg];
            D.v[e] = a;
            square += i < j ? 2 * a * a : (1 - a) * (1 - a);
            if (i < j) continue;
            trace += a;
            D.v[e] = a + demands.shift * a;
            shared.diagonal[j] = D.v[e];
            if (!(a > low && a < high)) atomicMin(&shared.unusable, j);
        }
    });
    square = tile_sum(shared, 0, square);
    trace = tile_sum(shared, 1, trace);
    const double departure = sqrt(square);
    if (threadIdx.x == 0) verdict->departure = departure;
    const auto close = [&](Verdict::Reason reason, Index column) {
        if (threadIdx.x == 0) verdict->close(demands.step, reason, column);
    };
    if (shared.unusable < n) return close(Verdict::Unusable, shared.unusable);
    if (!(trace <= demands.most_trace)) return close(Verdict::Trace, -1);
    if (!(departure <= demands.most_departure)) return close(Verdict::Departure, -1);

    double inverse_square = 0;
    if (!tiles_here) {
        for (int k = 0; k < steps; ++k) {
            barrier_sync<cross_ready, factor_threads>();
            const int failed = factor_block(shared, k);
            __syncwarp();
            barrier_arrive<block_factored, factor_threads>();
            if (failed >= 0) break;
        }
    } else {
        tiles.for_each([&](Tile16x8& D, int strip, int col) {
            if (in_cross(strip, col, 0)) publish(shared.panel, D, strip, col, 0);
        });
        barrier_arrive<cross_ready, factor_threads>();
        for (int j = warp; j < n; j += tile_warps) {
            for (int i = j + 1 + lane; i < n; i += 32) R[i + j * ldr] = 0;
        }
        const int x = threadIdx.x, x_block = x / 8;
        for (int k = 0; k < steps; ++k) {
            barrier_sync<block_factored, factor_threads>();
            if (shared.failed >= 0) break;
            double* const solved = shared.solved[k % 2];
            if (x < 8 * steps && (inverse || x_block >= k)) {
                double p[8];
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    const double2 pair = *unit_of(shared.panel, x, q);
                    p[2 * q] = x_block == k ? double(2 * q == x % 8) : pair.x;
                    p[2 * q + 1] = x_block == k ? double(2 * q + 1 == x % 8) : pair.y;
                }
                solve_column(p, shared);
#pragma unroll
                for (int q = 0; q < 4; ++q) *unit_of(solved, x, q) = {p[2 * q], p[2 * q + 1]};
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    // R⁻ᵀ's rows beyond n belong to the identity
                    if (x_block <= k && 8 * k + i < n) inverse_square += p[i] * p[i];
                }
            }
            if (warp == tile_warps - 1) {
                for (int e = lane; e < 64; e += 32) {
                    const int i = e % 8, j = e / 8;
                    if (i <= j && 8 * k + j < n) R[8 * k + i + (8 * k + j) * ldr] = shared.R[i][j];
                }
            }
            if (k + 1 == steps) break;
            barrier_sync<panel_solved, tile_threads>();
            const auto update = [&](Tile16x8& D, int strip, int col) {
                if (strip == k / 2) {
                    if (k % 2 == 0) D.v[0] = D.v[1] = 0;
                    if (k % 2 == 1) D.v[2] = D.v[3] = 0;
                }
                const double2 top = *unit_of(solved, 16 * strip + g, t), bottom = *unit_of(solved, 16 * strip + 8 + g, t);
                const double2 right = *unit_of(solved, 8 * col + g, t);
                multiply_add(D, {{-top.x, -bottom.x, -top.y, -bottom.y}}, {{right.x, right.y}});
            };
            const auto active = [&](int strip, int col) { return col > k && (inverse || 2 * strip + 1 > k); };
            // the next cross first
            tiles.for_each([&](Tile16x8& D, int strip, int col) {
                if (active(strip, col) && in_cross(strip, col, k + 1)) {
                    update(D, strip, col);
                    publish(shared.panel, D, strip, col, k + 1);
                }
            });
            barrier_arrive<cross_ready, factor_threads>();
            tiles.for_each([&](Tile16x8& D, int strip, int col) {
                if (active(strip, col) && !in_cross(strip, col, k + 1)) update(D, strip, col);
            });
            for (int j = 8 * (k + 1) + 4 * warp + lane / 8; j < n; j += 4 * tile_warps) {
                const int i = lane % 8;
                R[8 * k + i + j * ldr] = reinterpret_cast<const double*>(unit_of(solved, j, i / 2))[i % 2];
            }
        }
    }
    __syncthreads();
    if (shared.failed >= 0) return close(Verdict::Pivot, shared.failed);
    if (!inverse) return;
    // κ_F(RD)² = ‖RD‖_F² ‖(RD)⁻¹‖_F² = n Σ_x g_xx ‖(R⁻¹)(x, :)‖²
    const double weight = threadIdx.x < n ? shared.diagonal[threadIdx.x] : 0.0;
    const double condition = sqrt(n * tile_sum(shared, 0, weight * inverse_square));
    if (threadIdx.x == 0) verdict->condition = condition;
    if (!(condition < demands.most_condition)) close(Verdict::Condition, -1);
}

/// R (n×n, zeros below; may be G) and the verdict; nothing where that is closed. low < diag(G) < high is demanded first.
/// 0 < n <= 192. Does not wait.
inline cudaError_t factor_gram(int n, const double* G, Index ldg, double low, double high, const GramDemands& demands,
                               double* R, Index ldr, Verdict* verdict, cudaStream_t stream) {
    const auto launch = [&]<int units>() {
        factor_gram_kernel<units><<<1, factor_threads, 0, stream>>>(n, G, ldg, low, high, demands, R, ldr, verdict);
        return cudaGetLastError();
    };
    const int units = ceil_div(unit_count(ceil_div(n, 8), 16), tile_warps);
    if (units <= 1) return launch.template operator()<1>();
    if (units <= 2) return launch.template operator()<2>();
    if (units <= 4) return launch.template operator()<4>();
    if (units <= 7) return launch.template operator()<7>();
    if (units <= 10) return launch.template operator()<10>();
    return cudaErrorInvalidValue;
}

}  // namespace quoin::cuda
