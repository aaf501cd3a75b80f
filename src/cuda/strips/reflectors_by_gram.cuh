#pragma once

// The reflectors of a strip C whose columns are far from collinear, from its Gram matrix: its rows are read in three
// products of matrices instead of once a column.
//
//     G = CᵀC = RᵀR                     Cholesky, a row of R a step
//     C₁ − L Λ = R,   V = [L; C₂ Λ⁻¹]   the same step for C₁, the strip's top. Λ(j, ·) is what the columns lose along v_j. The sign
//                                       of R(j, ·) makes |Λ(j, j)| = |C₁(j, j)| + |R(j, j)|
//     T = (diag(1/τ) + triu(VᵀV, 1))⁻¹, τ_j = 2/‖v_j‖²
//
// T is made of the computed V, so Q is orthogonal whatever the error of V. That error shows in QᵀC, below R and in R.
// Let columns have norm 1. Products lose ε of G: 2⁻²¹ in f32, u in f64. To first order RᵀR = G + E with |E| <= ε has
// the factor R + E R⁻¹. So both errors are of order ε μ, μ = max_l Σ_i |Λ⁻¹(i, l)|, for other columns max_l Σ_i |Λ⁻¹(i,
// l)| ‖c_i‖. With random E of size ε and μ up to 8 they were at most 90 u in 20 trials each of 48 to 512 rows. The E of
// products is ten times smaller.

#include "cuda/strips/layout.cuh"

namespace quoin::cuda::strips {

/// Strips of fewer rows go column by column: most have a larger μ than max_growth, above which C has no reflectors by
/// its Gram matrix.
inline constexpr int min_rows_by_gram = 48;
inline constexpr float max_growth = 8;
/// The bound that (ν − |α|)/ν must exceed for a column x with norm ν and diagonal entry α, well above ε. If x is zero
/// below α, H = I, and a Gram matrix does not show that.
template <class T>
inline constexpr T min_below = std::is_same_v<T, float> ? 0x1p-15 : 0x1p-40;
/// Bounds on ‖c‖². Other columns are scaled first. In f32 two halves of f16 keep columns of 1/2 <= ‖c‖ <= 2¹² and their
/// Λ⁻¹.
template <class T>
__device__ __forceinline__ bool needs_no_scale(T squares) {
    return std::is_same_v<T, float> ? squares >= T(0x1p-2) && squares <= T(0x1p24)
                                    : squares >= least_squares_kept<T>() && squares <= std::numeric_limits<T>::max();
}

/// work(i, j, c) for the entries (i, j) that this thread has of the strip's top, which starts in tile `first`.
template <class S, class Work>
__device__ __forceinline__ void for_top(S& C, int first, Work work) {
    const StripThread<S> me;
#pragma unroll
    for (int r = 0; r < S::R; ++r) {
        const int top = me.tile(r) - first;
        if (top < 0 || top >= S::H) continue;
#pragma unroll
        for (int h = 0; h < S::H; ++h) {
#pragma unroll
            for (int e = 0; e < 2; ++e) work(8 * top + 2 * me.q + e, me.col(h), C.c[r][h][e]);
        }
    }
}

/// Every column from tile `first` on times a power of two that makes its norm 1/2 to 1, and the power to s.exponent.
template <class S>
__device__ __forceinline__ void normalize_columns(S& C, StripShared<S>& s, Cluster<S>& cluster, int first) {
    using T = typename S::Scalar;
    const StripThread<S> me;
    T squares[S::H] = {};
#pragma unroll
    for (int r = 0; r < S::R; ++r) {
        if (me.tile(r) < first) continue;
#pragma unroll
        for (int h = 0; h < S::H; ++h) {
#pragma unroll
            for (int e = 0; e < 2; ++e) squares[h] = fma(C.c[r][h][e], C.c[r][h][e], squares[h]);
        }
    }
    sum_and_store_dots<S>(squares, s.dots[0], me);
    cluster.join_dots(s.dots[0], Plus());
#pragma unroll
    for (int h = 0; h < S::H; ++h) {
        const T sum = sum_of_warps<S::warps>(s.dots[0][me.col(h)]);
        const int e =
            sum >= least_squares_kept<T>() && sum <= std::numeric_limits<T>::max() ? (ilogb(sum) >> 1) + 1 : 0;
        const PowerOfTwo<T> factor(-e);
        if (me.warp == 0 && me.q == 0) s.exponent[me.col(h)] += e;
#pragma unroll
        for (int r = 0; r < S::R; ++r) {
            if (me.tile(r) < first) continue;
            C.c[r][h][0] = factor * C.c[r][h][0];
            C.c[r][h][1] = factor * C.c[r][h][1];
        }
    }
    __syncthreads();
}

/// s.V := X, the strip's tiles from `first` on. Calls stored(start, n) when this warp has stored slots start, …, start
/// + n − 1, and all_stored() when the block has stored all. s.part[1] := XᵀX, row-major, by the warps that make T. If
/// `with_t`, every block gets s.t from the one that has tile `first`.
template <bool with_t, class S, class Stored, class AllStored>
__device__ __forceinline__ void store_with_gram(const S& X, StripShared<S>& s, Cluster<S>& cluster, int first,
                                                Stored stored, AllStored all_stored) {
    using T = typename S::Scalar;
    using Tile = typename StripShared<S>::Tile;
    using Word = typename Tile::Word;
    constexpr int Width = S::Width, M = S::M, H = S::H, parts = Tile::parts, step = Tile::tiles;
    const StripThread<S> me;
    T sums[M][H][4] = {};
    unrolled<S::chunks>([&](auto chunk) {
        T acc[parts][M][H][4] = {};
        for_active_groups<S>(chunk, first, [&](auto start, auto n) {
#pragma unroll
            for (int r = start; r < start + n; r += step) {
                Word words[H][parts][2] = {};
#pragma unroll
                for (int x = 0; x < step && r + x < start + n; ++x) {
#pragma unroll
                    for (int h = 0; h < H; ++h) {
                        Tile::split(words[h], x, X.c[r + x][h][0], X.c[r + x][h][1]);
                        Tile::store(s.V + me.place(r + x) * S::tile, me.col(h), me.q, words[h], x);
                    }
                }
#pragma unroll
                for (int part = 0; part < parts; ++part) {
#pragma unroll
                    for (int x = 0; x < M * H; ++x) {
                        const auto &low = words[x / H * 2][0], &high = words[x / H * 2 + 1][0];
                        multiply_add(acc[part][x / H][x % H], {low[0], high[0], low[1], high[1]},
                                     {words[x % H][part][0], words[x % H][part][1]});
                    }
                }
            }
            stored(start, n);
        });
#pragma unroll
        for (int x = 0; x < M * H * 4; ++x) {
            // XᵀX = P + Pᵀ, P = hiᵀhi/2 + hiᵀlo
            T& sum = sums[x / (4 * H)][x / 4 % H][x % 4];
#pragma unroll
            for (int part = 0; part < parts; ++part)
                sum = fma(acc[part][x / (4 * H)][x / 4 % H][x % 4], part == 0 ? T(0.5) : T(1), sum);
        }
    });
#pragma unroll
    for (int x = 0; x < M * H * 4; ++x) {
        const int mi = x / (4 * H), h = x / 4 % H, of = x % 4;
        s.part[me.warp][square_place<Width>(16 * mi + of / 2 * 8 + me.g, 8 * h + 2 * me.q) + of % 2] = sums[mi][h][of];
    }
    __syncthreads();
    all_stored();
    sum_parts<1, with_t>(s, cluster, me.has(first));
    if (me.warp >= S::t_warps) return;
    wait_for_t_warps<S>();
    for (int x = threadIdx.x; x < Width * Width; x += 32 * S::t_warps) {
        const int i = x / Width, j = x % Width;
        s.part[1][x] = (s.part[0][square_place<Width>(i, j)] + s.part[0][square_place<Width>(j, i)]) *
                       (1 / (Tile::scale * Tile::scale));
    }
}

/// Factors G in s.part[1] and C₁ in s.t, both row-major. Writes R with its scale to `r_block`, row-major, L below the
/// diagonal of s.part[0], and Λ⁻¹ to s.u. s.chain.sums := Σ_i |Λ⁻¹(i, l)| ‖c_i‖ over a warp's rows, or the largest
/// number if column l is nearly zero below its diagonal entry. By 2 chain_warps warps: lane l has column l.
template <class S>
__device__ __forceinline__ void factor_gram(StripShared<S>& s, typename S::Scalar* r_block) {
    using T = typename S::Scalar;
    constexpr int Width = S::Width, rows = Width / chain_warps;
    static_assert(S::warps >= 2 * chain_warps);
    auto& step = s.chain.step;
    const StripThread<S> me;
    const int l = me.lane % Width, warp = me.warp % chain_warps, first = warp * rows;
    const bool writes = me.lane < Width;
    const auto wait = [] { wait_for_warps<1, 2 * chain_warps>(); };
    if (me.warp < chain_warps) {
        // r = G(j, ·)/√G(j, j), G := G − rᵀr
        T G[rows];
#pragma unroll
        for (int k = 0; k < rows; ++k) G[k] = s.part[1][(first + k) * Width + l];
        if (warp == 0 && writes) step[0].gram[l] = G[0];
        wait();
        for (int owner = 0; owner < chain_warps; ++owner) {
            unrolled<rows>([&](auto k_of) {
                const int j = owner * rows + k_of;
                const auto& now = step[j % 2];
                auto& next = step[(j + 1) % 2];
                const T p = now.gram[j], g = now.gram[l], y = reciprocal_root(p), r = g * y, root = p * y;
                if (warp == 0 && writes) next.r[l] = r;
#pragma unroll
                for (int k = 0; k < rows; ++k) G[k] = fma(-(now.gram[first + k] * y), r, G[k]);
                if (warp == owner + (k_of + 1) / rows && writes) next.gram[l] = G[(k_of + 1) % rows];
                if (warp == 0 && me.lane == 0) next.norm = fma(fma(-root, root, p), y / 2, root);
                wait();
            });
        }
        return;
    }
    T top[rows], inverse[rows], R[rows] = {}, scale = 0;
    bool has_below = true;
    const auto publish = [&](int j, bool has_row, T row) {
        auto& next = step[(j + 1) % 2];
        if (has_row && writes) next.top_row[l] = row;
        if (me.lane == j) {
#pragma unroll
            for (int k = 0; k < rows; ++k) next.top_column[first + k] = top[k], next.inverse[first + k] = inverse[k];
        }
    };
    // Λ(j, l) = C₁(j, l) − R(j, l);  C₁(·, l) −= C₁(·, j) Λ(j, l)/Λ(j, j), and Λ⁻¹(·, l) likewise
    const auto eliminate = [&](int j, bool has_row, T& row_of_r) {
        const auto& now = step[(j + 1) % 2];
        const T alpha = now.top_row[j], norm = now.norm, b = now.top_row[l], r = now.r[l],
                d = reciprocal(abs(alpha) + norm);
        const bool negative = signbit(alpha);
        const T lost = (l > j ? (negative ? -b : b) + r : T(0)) * d, of_r = l == j ? norm : r;
#pragma unroll
        for (int k = 0; k < rows; ++k) {
            top[k] = fma(-lost, now.top_column[first + k], top[k]);
            inverse[k] = fma(-lost, now.inverse[first + k], inverse[k]);
        }
        row_of_r = has_row && l >= j ? (negative ? of_r : -of_r) : row_of_r;
        scale = l == j ? (negative ? -d : d) : scale;
        has_below = has_below && (l != j || norm - abs(alpha) > min_below<T> * norm);
    };
#pragma unroll
    for (int k = 0; k < rows; ++k) {
        top[k] = s.t[(first + k) * Width + l];
        inverse[k] = first + k == l;
    }
    publish(0, warp == 0, top[0]);
    wait();
    wait();
    for (int owner = 0; owner < chain_warps; ++owner) {
        unrolled<rows>([&](auto k_of) {
            const int j = owner * rows + k_of;
            if (j + 1 == Width) return;
            eliminate(j, warp == owner, R[k_of]);
            publish(j + 1, warp == owner + (k_of + 1) / rows, top[(k_of + 1) % rows]);
            wait();
        });
    }
    eliminate(Width - 1, warp == chain_warps - 1, R[rows - 1]);
    if (!writes) return;
    T sum = 0;
    const PowerOfTwo<T> unscaled(s.exponent[l]);
#pragma unroll
    for (int k = 0; k < rows; ++k) {
        const int i = first + k;
        inverse[k] *= scale;
        const T squares = s.part[1][i * (Width + 1)];
        sum = fma(abs(inverse[k]), squares * reciprocal_root(squares), sum);
        s.u.set(i / 16, l / 8, i % 16 / 8 * 2 + l % 2, 4 * (i % 8) + l % 8 / 2,
                inverse[k] * StripShared<S>::Tile::lift);
        s.part[0][i * Width + l] = i > l ? top[k] * scale : T(i == l);
        if (me.rank == 0) r_block[i * Width + l] = unscaled * R[k];
    }
    s.chain.sums[warp][l] = has_below ? sum : std::numeric_limits<T>::max();
}

/// R to `r_block`; V to the tiles of `image`, and v_stored() when the block's are there; by the warps that make T, VᵀV
/// to s.part[1] and tau to s.tau. Returns false, with a strip that has only been scaled, if the columns are too close
/// to collinear.
template <class S, class VStored>
__device__ __forceinline__ bool factor_by_gram(S& C, StripShared<S>& s, Cluster<S>& cluster, int first, int tiles,
                                               typename S::Scalar* image, typename S::Scalar* r_block,
                                               VStored v_stored) {
    using T = typename S::Scalar;
    constexpr int Width = S::Width, unit = 16 / int(sizeof(T));
    const StripThread<S> me;
    for (bool scaled = false;; scaled = true) {
        for_top(C, first, [&](int i, int j, T c) { s.t[i * Width + j] = c; });
        store_with_gram<true>(
            C, s, cluster, first, [](auto, auto) {}, [] {});
        __syncthreads();
        if (scaled || __all_sync(~0u, needs_no_scale(s.part[1][me.lane % Width * (Width + 1)]))) break;
        normalize_columns(C, s, cluster, first);
    }
    if (me.warp < 2 * chain_warps) factor_gram(s, r_block);
    __syncthreads();
    T growth = 0;
#pragma unroll
    for (int w = 0; w < chain_warps; ++w) growth += s.chain.sums[w][me.lane % Width];
    if (!__all_sync(~0u, growth <= max_growth)) {
        __syncthreads();  // s.dots takes the place of these sums
        return false;
    }
    add_product<true, 1>(C, s, first, [](auto) {});
    for_top(C, first, [&](int i, int j, T& c) { c = s.part[0][i * Width + j]; });
    __syncthreads();
    store_with_gram<false>(
        C, s, cluster, first,
        [&](auto start, auto n) {
            __syncwarp();
#pragma unroll
            for (int r = start; r < start + n; ++r) {
                const int t = me.tile(r);
                if (t < first || t >= tiles) continue;
#pragma unroll
                for (int at = me.lane * unit; at < S::tile; at += 32 * unit)
                    *reinterpret_cast<uint4*>(image + Index(t) * S::tile + at) =
                        *reinterpret_cast<const uint4*>(s.V + me.place(r) * S::tile + at);
            }
        },
        v_stored);
    if (me.warp < S::t_warps) wait_for_t_warps<S>();
    if (threadIdx.x < Width) s.tau[threadIdx.x] = 2 / s.part[1][threadIdx.x * (Width + 1)];
    return true;
}

}  // namespace quoin::cuda::strips
