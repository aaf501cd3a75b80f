#pragma once

// G = RᵀR for an n×n Gram matrix, n <= 192, the demands of its step, and ‖(RD)⁻¹‖_F, by one block.
//
// G is eliminated by rows of 8, R⁻ᵀ built in the places that become free. Step k turns the cross of row block k and
// column block k into a panel P (8×n) and subtracts a product of rank 8 from the entries on its right:
//
//            k                  P(:, x) := R_kk⁻ᵀ · G_kx (x right of k), · I (x = k), · (R⁻¹)_xkᵀ (x left of k)
//      ┌───┬───┬───────┐
//      │   │ W │   W   │        right of k it is R's row block, up to k it is R⁻ᵀ's:
//      │   ├───┼───────┤ k      D(i, j) := D(i, j) − P(:, i)ᵀP(:, j),   j > k, i <= j, D(k, ·) := 0 before
//      │   │   │   G   │
//      └───┴───┴───────┘        G's Schur complement below k; above, the part of R⁻¹ that is known.
//
// The triangle, negated, is held in registers, as 16×8 tiles (sm80_dmma.cuh) of 15 warps, up to 11 a warp, every cross
// spread over all of them. The 15 warps update the next cross first. A 16th warp then factors its diagonal block, and
// the 15 finish the update of the step before. One thread a column solves for P. R⁻ᵀ is built only if ‖(RD)⁻¹‖ is
// demanded.
//
//   tile warps      cross k ─┬─ update the rest ─┬─ solve ─ P ─ update cross k + 1 ─┬─ …
//   diagonal warp            └─── factor R_kk ───┘                                  └─ …
//
// What orders the shared memory, by the barriers `cross_ready`, `block_factored` and `panel_solved` of a step k:
//
//   panel             Cross k + 1 is written after panel_solved, at which a tile warp arrives once it has read cross k.
//                     The diagonal warp has read it before block_factored. It is read after the next cross_ready.
//   U, reciprocal,    Written between cross_ready and block_factored. The tile warps read them after block_factored,
//                     and have
//   failed            done so when they arrive at the next cross_ready.
//   solved            Step k uses the memory of step k − 2. It is written after panel_solved of step k − 1, at which a
//                     warp arrives once it has read step k − 2, and is read after panel_solved of step k.
//
// compute-sanitizer's racecheck does not follow barriers that a part of the block meets at, and reports these pairs.
//
// Shared: 3 panels of 12 KB (a cross, and P of this step and the last), 16-byte units permuted so that a thread may
// read its column and a warp its fragments without bank conflicts. Registers: 8 a tile and about 40. n³/3 flops for R
// and as many for R⁻¹; n² numbers read, n² written. Bound by latency: n reciprocals one after the other, and four
// barriers for every 8. None of them where G = I + E with ‖E‖_F² <= u, as it is for all but ill-conditioned A in the
// second step of CholeskyQR2: the upper triangular F with F + Fᵀ = E gives R = I + F, and ‖RᵀR − G‖_F = ‖FᵀF‖_F <=
// ‖E‖_F²/2 is less than what Cholesky's own rounding leaves.

#include "cuda/arch/sm70_barriers.cuh"
#include "cuda/arch/sm80_dmma.cuh"
#include "cuda/cholesky/block_lu.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

constexpr int tile_warps = 15, tile_threads = tile_warps * 32;
constexpr int factor_threads = tile_threads + 32;
/// ‖I − G‖_F² up to which R is I and half of the rest: u.
constexpr double near_identity = 1.1102230246251565e-16;

/// Returns the bound on κ_F <= n κ₂ that ‖I − G‖ <= δ gives if δ is demanded; otherwise −1.
__host__ __device__ inline double condition_by_departure(const GramDemands& demands, int n, double departure) {
    return demands.max_departure < 1 ? n * std::sqrt((1 + departure) / (1 - departure)) : -1.0;
}

struct FactorShared {
    double panel[factor_max_cols * 8];
    double solved[2][factor_max_cols * 8];        ///< of this step, and of the last, which late warps still read
    __align__(16) double U[8][8], reciprocal[8];  ///< R_kk with its rows scaled to a unit diagonal, and 1/r_jj
    double diagonal[factor_max_cols];
    double sums[tile_warps][2];
    __align__(16) short places[tile_warps + 1][16];
    int unusable, failed;
};

/// Named barriers of the block.
constexpr int cross_ready = 1, block_factored = 2, panel_solved = 3;
/// Tile (strip, col), 16 rows by 8 columns of the upper triangle, belongs to warp (col + 2·strip) mod `tile_warps`:
/// every cross is spread over all warps. The most that one of them has:
__host__ __device__ constexpr int tiles_of_warp(int col_tiles) {
    int most = 0;
    for (int warp = 0; warp < tile_warps; ++warp) {
        int count = 0;
        for (int s = 0; 2 * s < col_tiles; ++s) {
            for (int c = 2 * s; c < col_tiles; ++c) count += (c + 2 * s) % tile_warps == warp;
        }
        most = count > most ? count : most;
    }
    return most;
}

template <int units>
struct Tiles {
    static_assert(units <= 16);
    Tile16x8 D[units];
    const int4* places;  ///< of this warp, 32·strip + col, eight in 16 bytes

    /// Writes the list, followed by a place that is never in use.
    __device__ Tiles(int col_tiles, int warp, short* list) : places(reinterpret_cast<const int4*>(list)) {
        int u = 0;
        for (int s = 0; 2 * s < col_tiles; ++s) {
            const int skip = (warp - 4 * s % tile_warps + tile_warps) % tile_warps;
            for (int c = 2 * s + skip; c < col_tiles; c += tile_warps) list[u++] = static_cast<short>(32 * s + c);
        }
        for (; u < 16; ++u) list[u] = 32 * 63;
        __syncwarp();
    }
    /// f(tile, strip, col) for each of `mask`.
    template <class F>
    __device__ __forceinline__ void for_each(unsigned mask, F f) {
        const int4 low = places[0], high = places[1];
        const int pairs[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int u = 0; u < units; ++u) {
            if (!(mask >> u & 1)) continue;
            const int place = u % 2 ? pairs[u / 2] >> 16 : pairs[u / 2];
            f(D[u], place >> 5 & 63, place & 31);
        }
    }
    /// Returns a mask of the tiles with a true f(strip, col).
    template <class F>
    __device__ __forceinline__ unsigned select(F f) {
        unsigned mask = 0;
        for (int u = 0; u < units; ++u) {
            const int place = reinterpret_cast<const short*>(places)[u];
            if (f(place / 32, place % 32)) mask |= 1u << u;
        }
        return mask;
    }
};

/// The pieces of cross k in a tile that has some, and holds −D, into the panel: the row block as it is, with D := 0
/// then, the column block above it transposed.
__device__ __forceinline__ void publish(double* panel, Tile16x8& D, int strip, int col, int k) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // column 8·block + g, rows 2t and the next; columns 8·col + 2t and the next, row g
    double2* const column = unit_of(panel, g, t) + strip * 64;
    double* const row = reinterpret_cast<double*>(unit_of(panel, 2 * t, g / 2)) + g % 2 + col * 64;
    if (2 * strip < k && col == k) column[0] = {-D.v[0], -D.v[1]};
    if (2 * strip + 1 < k && col == k) column[32] = {-D.v[2], -D.v[3]};
    if (2 * strip == k) {
        row[0] = -D.v[0];
        row[8] = -D.v[1];
        D.v[0] = D.v[1] = 0;
    }
    if (2 * strip + 1 == k) {
        row[0] = -D.v[2];
        row[8] = -D.v[3];
        D.v[2] = D.v[3] = 0;
    }
}

/// Computes R_kk of the 8×8 block at the panel's columns 8k … from its L U = (D R_kk)ᵀ R_kk. The roots follow from the
/// reciprocals, and L is R_kk with unit diagonal, transposed. Returns −1, or the first column without a positive,
/// finite pivot. R (at its block) is stored where it lies inside n.
__device__ __forceinline__ int factor_block(FactorShared& shared, int k, int n, double* R, Index ldr) {
    const int lane = threadIdx.x % 32, r = lane / 8, j = lane % 8;
    double a[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        // the upper triangle, and its mirror image
        const int row = min(r + 4 * h, j), col = max(r + 4 * h, j);
        a[h] = reinterpret_cast<const double*>(unit_of(shared.panel, 8 * k + col, row / 2))[row % 2];
    }
    const double pivot = factor_block_lu(a);
    const bool good = pivot > 0 && pivot <= 1.7976931348623157e308;
    const unsigned bad = __ballot_sync(~0u, !good && lane < 8);
    const int failed = bad ? 8 * k + __ffs(bad) - 1 : -1;
    const double reciprocal = rsqrt(pivot);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (r + 4 * h > j) shared.U[j][r + 4 * h] = a[h];
    }
    if (lane < 8) shared.reciprocal[lane] = reciprocal;
    if (lane == 0) shared.failed = failed;
    __syncwarp();
    wait_for_warps<block_factored, factor_threads / 32>();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int i = r + 4 * h;
        const double entry = a[h] * __shfl_sync(~0u, reciprocal, i);
        if (i <= j && 8 * k + j < n) R[8 * k + i + (8 * k + j) * ldr] = entry;
    }
    return failed;
}

/// x := R_kk⁻ᵀ x.
__device__ __forceinline__ void solve_column(double (&x)[8], const FactorShared& shared) {
#pragma unroll
    for (int i = 0; i < 7; ++i) {
        const double2* const row = reinterpret_cast<const double2*>(shared.U[i]);
#pragma unroll
        for (int q = (i + 1) / 2; q < 4; ++q) {
            const double2 u = row[q];
            if (2 * q > i) x[2 * q] -= u.x * x[i];
            x[2 * q + 1] -= u.y * x[i];
        }
    }
    const double2* const reciprocal = reinterpret_cast<const double2*>(shared.reciprocal);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        const double2 r = reciprocal[q];
        x[2 * q] *= r.x;
        x[2 * q + 1] *= r.y;
    }
}

/// The sum of `value` over the tile warps, in a fixed order; every thread of the block calls it.
__device__ __forceinline__ double tile_sum(FactorShared& shared, int slot, double value) {
    const int warp = threadIdx.x / 32;
    value = warp_sum(value);
    if (warp < tile_warps && threadIdx.x % 32 == 0) shared.sums[warp][slot] = value;
    __syncthreads();
    double sum = 0;
    for (int w = 0; w < tile_warps; ++w) sum += shared.sums[w][slot];
    return sum;
}

template <int units>
__global__ void __launch_bounds__(factor_threads, 1)
    factor_gram_kernel(int n, const double* G, Index ldg, double low, double high,
                       const __grid_constant__ GramDemands demands, double* R, Index ldr, Certificate* certificate) {
    __shared__ __align__(16) FactorShared shared;
    if (demands.step > 0 && certificate->refused()) return;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int steps = ceil_div(n, 8);
    const bool tiles_here = warp < tile_warps, inverse = demands.asks_condition();
    // the diagonal warp has none
    Tiles<units> tiles(tiles_here ? steps : 0, warp, shared.places[warp]);
    if (threadIdx.x == 0) {
        shared.unusable = n;
        shared.failed = -1;
    }
    __syncthreads();

    // −G, continued by −I beyond n; all of it on its way before any of it is looked at
    double square = 0, trace = 0;
    const auto for_each_entry = [&](auto f) {
        tiles.for_each(~0u, [&](Tile16x8& D, int strip, int col) {
#pragma unroll
            for (int e = 0; e < 4; ++e) f(D.v[e], 16 * strip + g + e / 2 * 8, 8 * col + 2 * t + e % 2);
        });
    };
    for_each_entry([&](double& d, int i, int j) { d = i <= j && j < n ? G[i + j * ldg] : 0.0; });
    for_each_entry([&](double& d, int i, int j) {
        const double a = d;
        d = i == j ? -1.0 : -a;
        if (i > j || j >= n) return;
        square += i < j ? 2 * a * a : (1 - a) * (1 - a);
        if (i < j) return;
        trace += a;
        shared.diagonal[j] = a;
        d = -shared.diagonal[j];
        if (!(a > low && a < high)) atomicMin(&shared.unusable, j);
    });
    square = tile_sum(shared, 0, square);
    trace = tile_sum(shared, 1, trace);
    const double departure = sqrt(square);
    if (threadIdx.x == 0) {
        if (demands.step == 0) *certificate = {};
        certificate->departure = departure;
        certificate->factor_condition = condition_by_departure(demands, n, departure);
    }
    const auto refuse = [&](Certificate::Reason reason, Index column) {
        if (threadIdx.x == 0) certificate->refuse(demands.step, reason, column);
    };
    if (shared.unusable < n) return refuse(Certificate::Unusable, shared.unusable);
    if (!(trace <= demands.max_trace)) return refuse(Certificate::Trace, -1);
    if (!(departure <= demands.max_departure)) return refuse(Certificate::Departure, -1);
    const auto clear_below = [&] {
        for (int j = warp; j < n; j += tile_warps) {
            for (int i = j + 1 + lane; i < n; i += 32) R[i + j * ldr] = 0;
        }
    };
    if (!inverse && square <= near_identity) {
        if (!tiles_here) return;
        clear_below();
        // R = I + F,  f_ij = e_ij,  f_jj = e_jj / 2
        for_each_entry([&](double& d, int i, int j) {
            if (i <= j && j < n) R[i + j * ldr] = i == j ? 0.5 - 0.5 * d : -d;
        });
        return;
    }

    double inverse_square = 0;
    if (!tiles_here) {
        for (int k = 0; k < steps; ++k) {
            wait_for_warps<cross_ready, factor_threads / 32>();
            if (factor_block(shared, k, n, R, ldr) >= 0) break;
        }
    } else {
        // lane k: the tiles that hold a piece of cross k, and those that its P is subtracted from
        const unsigned crossed = tiles.select([&](int strip, int col) {
            return (strip == lane / 2 && col >= lane) || (inverse && col == lane && 2 * strip < lane);
        });
        const unsigned updated =
            tiles.select([&](int strip, int col) { return col > lane && (inverse || 2 * strip + 1 > lane); });
        tiles.for_each(__shfl_sync(~0u, crossed, 0),
                       [&](Tile16x8& D, int strip, int col) { publish(shared.panel, D, strip, col, 0); });
        wait_for_warps<cross_ready, factor_threads / 32>();
        clear_below();
        const int x = threadIdx.x, x_block = x / 8;
        for (int k = 0; k < steps; ++k) {
            wait_for_warps<block_factored, factor_threads / 32>();
            if (shared.failed >= 0) break;
            double* const solved = shared.solved[k % 2];
            if (x < 8 * steps && (inverse || x_block >= k)) {
                double p[8];
                if (x_block == k) {
#pragma unroll
                    for (int i = 0; i < 8; ++i) p[i] = i == x % 8 ? 1.0 : 0.0;
                } else {
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        const double2 pair = *unit_of(shared.panel, x, q);
                        p[2 * q] = pair.x;
                        p[2 * q + 1] = pair.y;
                    }
                }
                solve_column(p, shared);
#pragma unroll
                for (int q = 0; q < 4; ++q) *unit_of(solved, x, q) = {p[2 * q], p[2 * q + 1]};
                if (x_block <= k) {
                    double square[2] = {};
#pragma unroll
                    for (int i = 0; i < 8; ++i) square[i % 2] += p[i] * p[i];
                    inverse_square += square[0] + square[1];
                }
            }
            if (k + 1 == steps) break;
            wait_for_warps<panel_solved, tile_threads / 32>();
            // the lane's pairs of the fragments, of rows g = 0 … 7: 4 units a column
            const double2* const mine = unit_of(solved, g, t);
            const auto update = [&](Tile16x8& D, int strip, int col) {
                // −D += P(:, i)ᵀP(:, j)
                const double2 top = mine[strip * 64], bottom = mine[strip * 64 + 32], right = mine[col * 32];
                multiply_add(D, {{top.x, bottom.x, top.y, bottom.y}}, {{right.x, right.y}});
            };
            // the next cross first
            const unsigned next = __shfl_sync(~0u, crossed, k + 1), all = __shfl_sync(~0u, updated, k);
            tiles.for_each(next, [&](Tile16x8& D, int strip, int col) {
                update(D, strip, col);
                publish(shared.panel, D, strip, col, k + 1);
            });
            wait_for_warps<cross_ready, factor_threads / 32>();
            tiles.for_each(all & ~next, update);
            for (int j = 8 * (k + 1) + 4 * warp + lane / 8; j < n; j += 4 * tile_warps) {
                const int i = lane % 8;
                R[8 * k + i + j * ldr] = reinterpret_cast<const double*>(unit_of(solved, j, i / 2))[i % 2];
            }
        }
    }
    __syncthreads();
    if (shared.failed >= 0) return refuse(Certificate::Pivot, shared.failed);
    if (!inverse) return;
    // κ_F(RD)² = ‖RD‖_F² ‖(RD)⁻¹‖_F² = n Σ_x g_xx ‖(R⁻¹)(x, :)‖²
    const double weight = threadIdx.x < n ? shared.diagonal[threadIdx.x] : 0.0;
    const double condition = sqrt(n * tile_sum(shared, 0, weight * inverse_square));
    if (threadIdx.x == 0) certificate->condition = certificate->factor_condition = condition;
    if (!(condition < demands.max_condition)) refuse(Certificate::Condition, -1);
}

/// R (n×n, zeros below; may be G) and the certificate; nothing where that is refused. low < diag(G) < high is demanded
/// first. 0 < n <= 192. Does not wait.
inline void factor_gram(Context<Cuda>& ctx, MatrixView<const double, Cuda> G, double low, double high,
                        const GramDemands& demands, MatrixView<double, Cuda> R, Certificate* certificate) {
    constexpr int sizes[] = {2, 4, 7, 11};
    const int n = static_cast<int>(G.cols), tiles = tiles_of_warp(ceil_div(n, 8));
    with_row<std::size(sizes)>(first_row(sizes, [&](int units) { return tiles <= units; }), [&](auto row) {
        launch(ctx.stream(), factor_gram_kernel<sizes[row]>, {1, factor_threads}, n, G.data, G.ld, low, high, demands,
               R.data, R.ld, certificate);
    });
}

}  // namespace quoin::cuda
