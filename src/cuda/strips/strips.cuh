#pragma once

// Many matrices of up to 8·R·warps·cluster rows, factored strip by strip of `Width` columns: a cluster of blocks, or
// one block, holds a strip in its registers.
//
//     A = [ strip 0 | strip 1 | … ]     strip s:  C := H_{s−1}ᵀ ⋯ H_1ᵀ H_0ᵀ C, H_i = I − V_i T_i V_iᵀ, from the strips before it,
//                                       then its own reflectors V_s, T_s, and R above them, which are written once
//
// One launch factors the whole batch. Clusters draw tickets (strip, matrix), a strip after the strips that it needs. A
// cluster waits for V_i until it is published. So a strip may be updated by V_0 … V_{i−1} while another cluster makes
// V_i. T_i follows V_i, and is needed only after VᵀC. The bits of a result do not depend on the order of the clusters.
//
//     W := VᵀC       sums over a warp's own rows, then over warps in shared memory, then over the blocks of the cluster
//     U := op(T) W   H²/2 products, H = Width/8, by every block
//     C := C − V U   by each warp for its rows, while the next V comes into the places that are free
//
// f32 takes three products of f16 for one (products.cuh). The numbers have sizes that f16 holds: a column starts with
// 2 <= max |c| <= 2⁸, of more than 2048 rows 2⁴ <= max |c| <= 2⁶, and keeps its norm, at most √m max |c| < 2¹⁴; |v| <=
// 1; columns of VT and VTᵀ are some τv = 2v/‖v‖² turned by reflectors, and ‖v‖ >= 1, so that |u| <= 2‖c‖. Splitting a
// column into halves loses about u max |c| in norm. Many matrices are bound by these products, few by the chain of
// columns (reflectors_by_columns.cuh), and of panels (reflectors_by_gram.cuh).

#include "cuda/arch/sm70_vector.cuh"
#include "cuda/arch/sm80_copy_async.cuh"
#include "cuda/strips/reflectors_by_columns.cuh"
#include "cuda/strips/reflectors_by_gram.cuh"
#include "cuda/strips/size.cuh"

namespace quoin::cuda::strips {

/// e of a column whose numbers become too large or too small for its products, else 0.
template <class S>
__device__ int exponent_of(typename S::Scalar largest) {
    using T = typename S::Scalar;
    if constexpr (std::is_same_v<T, double>) {
        return far_exponent(largest);
    } else {
        constexpr bool tall = S::rows > 2048;
        constexpr int least = tall ? 4 : 1, most = tall ? 6 : 8;
        const bool fits = largest >= 1 << least && largest <= 1 << most;
        return fits || largest == 0 || !(largest <= std::numeric_limits<T>::max()) ? 0 : ilogb(largest) - (most - 1);
    }
}

/// C := columns first, first + 1, … of an m×cols matrix, each times 2^-e, e in s.exponent. Whether all of the thread's
/// entries are finite.
template <class S>
__device__ __forceinline__ bool load_strip(S& C, StripShared<S>& s, Cluster<S>& cluster,
                                           const typename BatchEntries<const typename S::Scalar>::One& A, int m,
                                           Index first, Index cols) {
    using T = typename S::Scalar;
    const StripThread<S> me;
    T finite = 0, largest[S::H * S::panels] = {};
#pragma unroll
    for (int h = 0; h < S::H * S::panels; ++h) {
        const Index col = first + me.col(h);
        const PairedRows<const T> a(A.data + col * A.col_stride, A.row_stride, col < cols ? m : 0);
#pragma unroll
        for (int r = 0; r < S::R; ++r) {
            const Pair<T> x = a.load(me.row(r, 0));
            C.c[r][h][0] = x.at[0], C.c[r][h][1] = x.at[1];
        }
    }
#pragma unroll
    for (int h = 0; h < S::H * S::panels; ++h) {
#pragma unroll
        for (int r = 0; r < S::R; ++r) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const T x = C.c[r][h][e];
                largest[h] = max(largest[h], abs(x));
                finite += x * 0;
            }
        }
    }
#pragma unroll
    for (int panel = 0; panel < S::panels; ++panel) {
#pragma unroll
        for (int h = 0; h < S::H; ++h) {
            const T of_warp = over_rows(largest[panel * S::H + h], Larger());
            if (me.q == 0) s.dots[0][me.col(h)][me.warp] = of_warp;
        }
        cluster.join_dots(s.dots[0], Larger());
        if (threadIdx.x < S::Width) {
            T of_column = 0;
            for (int w = 0; w < S::warps; ++w) of_column = max(of_column, s.dots[0][threadIdx.x][w]);
            s.exponent[panel * S::Width + threadIdx.x] = exponent_of<S>(of_column);
        }
        __syncthreads();
    }
#pragma unroll
    for (int h = 0; h < S::H * S::panels; ++h) {
        const int e = s.exponent[me.col(h)];
        if (e == 0) continue;
        const PowerOfTwo<T> scale(-e);
#pragma unroll
        for (int r = 0; r < S::R; ++r) {
            C.c[r][h][0] = scale * C.c[r][h][0];
            C.c[r][h][1] = scale * C.c[r][h][1];
        }
    }
    return finite == 0;
}

template <class S>
__device__ typename S::Scalar* image_of(const StripSize& size, const StripFactors<typename S::Scalar>& F, Index b,
                                        int piece) {
    return F.images + (b * size.pieces + piece) * size.tiles * S::tile;
}
template <class S>
__device__ typename S::Scalar* square_of(const StripSize& size, const StripFactors<typename S::Scalar>& F, Index b,
                                         int panel, int which) {
    return F.squares + ((b * size.panels + panel) * 2 + which) * S::Width * S::Width;
}
/// Where a thread finds V and T of a matrix's panels.
template <class S>
struct PanelCopies {
    using T = typename S::Scalar;
    static constexpr int unit = 16 / int(sizeof(T)), square = S::Width * S::Width;

    __device__ PanelCopies(const StripSize& size_, const StripFactors<T>& F_, Index b_) : size(size_), F(F_), b(b_) {
        const StripThread<S> me;
        own = image_of<S>(size, F, b, 0) + me.tile(0) * S::tile + me.lane * unit;
    }
    __device__ const T* v(int panel) const { return own + panel * Index(size.tiles * S::tile); }
    __device__ const T* t(int panel) const { return square_of<S>(size, F, b, panel, 1); }

    const StripSize& size;
    const StripFactors<T>& F;
    const Index b;
    const T* own;  ///< of panel 0: 16 bytes of the warp's first tile
};

/// Starts the copies of this warp's tiles of V in one chunk, a constant, with zeros above its diagonal block and below
/// A. The first chunk also copies T if `with_t`. Each warp copies the part of V that it reads.
template <class S, class Chunk>
__device__ __forceinline__ void fetch_chunk(StripShared<S>& s, const PanelCopies<S>& copies, int panel, Chunk chunk,
                                            bool with_t) {
    using T = typename S::Scalar;
    constexpr int unit = copies.unit, bytes = S::tile * int(sizeof(T));
    const StripThread<S> me;
    const int first = panel * S::H, above = first - me.tile(0);
    const T* const from = copies.v(panel);
    const int past = copies.size.tiles - me.tile(0);
    T* const to = s.V + me.place(0) * S::tile + me.lane * unit;
    const auto copy = [&](auto r, bool exists) {
        unrolled<(bytes + 511) / 512>([&](auto part) {
            if (bytes % 512 == 0 || 512 * part + 16 * me.lane < bytes)
                copy_async_at<bytes * S::warps * r + 512 * part, bytes * S::all_warps * r + 512 * part>(
                    to, from, exists ? 16 : 0);
        });
    };
    constexpr int start = chunk * S::chunk, last = start + S::chunk - 1;
    if (start * S::all_warps >= above && last * S::all_warps < past) {
        unrolled<S::chunk>([&](auto x) { copy(std::integral_constant<int, start + x>(), true); });
    } else {
        for_active_groups<S>(chunk, first, [&](auto r, auto n) {
            unrolled<n>([&](auto x) {
                constexpr int tile = (r + x) * S::all_warps;
                copy(std::integral_constant<int, r + x>(), tile >= above && tile < past);
            });
        });
    }
    if (chunk == 0 && with_t) {
#pragma unroll
        for (int x = 0; x < copies.square; x += S::threads * unit) {
            if (const int at = x + threadIdx.x * unit; at < copies.square)
                copy_async<16>(s.t + at, copies.t(panel) + at, unit);
        }
    }
}

/// C := (I − V op(T) Vᵀ) C, of C's first `panels` panels, with the V and T whose copies are under way, one group a
/// chunk. `meanwhile()` is called by the last warp, and may be what brings T; `seen()` by all, after it; `next(chunk)`
/// by all when this warp has done with a chunk of V, and starts a group.
template <int panels, class S, class Meanwhile, class Seen, class Next>
__device__ __forceinline__ void apply_panel(S& C, StripShared<S>& s, Cluster<S>& cluster, int first, bool transpose,
                                            Meanwhile meanwhile, Seen seen, Next next) {
    using T = typename S::Scalar;
    using Tile = typename StripShared<S>::Tile;
    constexpr int Width = S::Width, H = S::H, M = S::M, square = Width * Width;
    const StripThread<S> me;
    // where part has W(i, j)
    const auto place = [](int i, int j) { return j / Width * square + square_place<Width>(i, j % Width); };
    const int g = me.g, q = me.q;
    {
        // scale W = VᵀC over the rows of this warp
        T acc[S::sums][M][H * panels][4];
        unrolled<S::chunks>([&](auto chunk) {
            constexpr int step = Tile::tiles, apart = S::warps * S::tile, past = (chunk + 1) * S::chunk;
            constexpr bool first_sums = past <= S::summed;
            if constexpr ((past - S::chunk) % S::summed == 0) {
#pragma unroll
                for (int x = 0; x < S::sums * M * H * panels * 4; ++x) (&acc[0][0][0][0])[x] = 0;
            }
            wait_for_copies<S::chunks - 1 - chunk>();
            __syncwarp();
            for_active_groups<S>(chunk, first, [&](auto start, auto n) {
#pragma unroll
                for (int r = start; r < start + n; r += step) {
                    const bool pair = step == 2 && r + 1 < start + n;
                    auto& sums = acc[r / step % S::sums];
                    const T* const V = s.V + me.place(r) * S::tile;
                    typename Tile::Word a[Tile::parts][M][4];  // lo, hi
#pragma unroll
                    for (int part = 0; part < Tile::parts; ++part) {
#pragma unroll
                        for (int mi = 0; mi < M; ++mi) Tile::load_left(a[part][mi], V, apart, pair, mi, part, me.lane);
                    }
#pragma unroll
                    for (int h = 0; h < H * panels; h += 2) {
                        Operand<T, 2> b[2];
#pragma unroll
                        for (int x = 0; x < 2; ++x) {
                            const T(&c)[2] = C.c[r][h + x];
                            if constexpr (step == 2) {
                                b[x].set(0, c[0], c[1]);
                                if (pair) b[x].set(1, C.c[r + 1][h + x][0], C.c[r + 1][h + x][1]);
                            } else {
                                b[x].set(0, c[0]);
                                b[x].set(1, c[1]);
                            }
                        }
#pragma unroll
                        for (int pass = 0; pass < passes<T>; ++pass) {
#pragma unroll
                            for (int x = 0; x < 2 * M; ++x)
                                multiply_add(sums[x / 2][h + x % 2], a[min(pass, Tile::parts - 1)][x / 2],
                                             right_of(pass, b[x % 2]));
                        }
                    }
                }
            });
            if constexpr (past % S::summed != 0) return;
            // read all, then write all: a read would wait for the write before it
            constexpr int pairs = H * H * panels;
            T* row_g[H];  // place(8 half + g, ·) is 8 half rows after place(g, ·)
#pragma unroll
            for (int h = 0; h < H; ++h) row_g[h] = s.part[me.warp] + place(g, 8 * h + 2 * q);
            const auto at = [&](int x) -> Pair<T>& {
                const int h = x % (H * panels), half = x / (H * panels);
                return reinterpret_cast<Pair<T>&>(row_g[h % H][h / H * square + 8 * half * Width]);
            };
            Pair<T> sums[pairs] = {};
#pragma unroll
            for (int x = 0; !first_sums && x < pairs; ++x) sums[x] = at(x);
#pragma unroll
            for (int x = 0; x < pairs; ++x) {
                const int h = x % (H * panels), half = x / (H * panels);
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    T sum = acc[0][half / 2][h][2 * (half % 2) + e];
#pragma unroll
                    for (int of = 1; of < S::sums; ++of) sum += acc[of][half / 2][h][2 * (half % 2) + e];
                    sums[x].at[e] = first_sums ? sum : sums[x].at[e] + sum;
                }
            }
#pragma unroll
            for (int x = 0; x < pairs; ++x) at(x) = sums[x];
        });
    }
    __syncthreads();
    {
        sum_parts<panels>(s, cluster);
        if (me.warp == S::warps - 1) meanwhile();
    }
    __syncthreads();
    seen();
    // −U = −op(T) W, a 16×8 tile a warp
    for (int of = me.warp; of < M * H * panels; of += S::warps) {
        const int mi = of % M, h = of / M;
        Operand<T, 4> a[H];
        Operand<T, 2> b[H];
        T acc[H][4] = {};
#pragma unroll
        for (int kk = 0; kk < H; ++kk) {
            const auto left = [&](int i, int j) -> T {  // op(T)(16mi + i, 8kk + j)
                return transpose ? s.t[square_place<Width>(8 * kk + j, 16 * mi + i)]
                                 : s.t[square_place<Width>(16 * mi + i, 8 * kk + j)];
            };
#pragma unroll
            for (int x = 0; x < 4; ++x) a[kk].set(x, left(g + 8 * (x % 2), q + 4 * (x / 2)));
#pragma unroll
            for (int x = 0; x < 2; ++x) b[kk].set(x, s.part[0][place(8 * kk + q + 4 * x, 8 * h + g)]);
        }
#pragma unroll
        for (int pass = 0; pass < passes<T>; ++pass) {
#pragma unroll
            for (int kk = 0; kk < H; ++kk) multiply_add_tf32(acc[kk], left_of(pass, a[kk]), right_of(pass, b[kk]));
        }
#pragma unroll
        for (int x = 0; x < 4; ++x) {
            T sum = acc[0][x];
#pragma unroll
            for (int kk = 1; kk < H; ++kk) sum += acc[kk][x];
            s.u.set(mi, h, x, me.lane, sum * (-1 / Tile::scale));
        }
    }
    __syncthreads();
    add_product<false, panels>(C, s, first, next);
}

/// By the warps that make T: `to` := T = (diag(1/τ) + triu(VᵀV, 1))⁻¹, as it lies in shared memory, of VᵀV in s.part[1]
/// and tau in s.tau: 8×8 blocks on the diagonal, then T12 = −T11 (VᵀV)12 T22 of twice the size.
template <class S>
__device__ void invert_gram(StripShared<S>& s, bool stores, typename S::Scalar* to) {
    using T = typename S::Scalar;
    constexpr int Width = S::Width;
    T* const product = s.part[0];
    const auto gram = [&](int i, int j) { return s.part[1][i * Width + j]; };
    const auto t = [&](int i, int j) -> T& { return s.t[square_place<Width>(i, j)]; };
    const auto store = [&](int i, int j, T x) {
        t(i, j) = x;
        if (stores) to[square_place<Width>(i, j)] = x;
    };
    if (threadIdx.x < Width) {
        // T(i, c) = −τ_i Σ_{i<l<=c} (VᵀV)(i, l) T(l, c)
        const int c = threadIdx.x % 8, first = threadIdx.x - c;
        T column[8], entries[8][8], tau[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            tau[i] = s.tau[first + i];
#pragma unroll
            for (int l = 0; l < 8; l += vector_size<T>) {
                const auto some = *reinterpret_cast<const Vector<T>*>(s.part[1] + (first + i) * Width + first + l);
#pragma unroll
                for (int x = 0; x < vector_size<T>; ++x) entries[i][l + x] = some.at[x];
            }
        }
#pragma unroll
        for (int i = 7; i >= 0; --i) {
            T sum = i == c;
#pragma unroll
            for (int l = 7; l > i; --l) sum = fma(-entries[i][l], column[l], sum);
            column[i] = i > c ? T(0) : tau[i] * sum;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) store(first + i, first + c, column[i]);
    } else {
        for (int x = threadIdx.x - Width; x < Width * Width; x += 32 * S::t_warps - Width) {
            if (const int i = x / Width, j = x % Width; i / 8 > j / 8) store(i, j, 0);
        }
    }
    wait_for_t_warps<S>();
#pragma unroll
    for (int half = 8; half < Width; half *= 2) {
        const int x = threadIdx.x, i = x % half, j = x / half % half, first = x / (half * half) * 2 * half,
                  second = first + half;
        const bool exists = x < Width * half / 2;
        if (exists) {
            T sum[2] = {};
#pragma unroll
            for (int l = 0; l < half; ++l)
                sum[l % 2] = fma(gram(first + i, second + l), t(second + l, second + j), sum[l % 2]);
            product[(first + i) * Width + j] = sum[0] + sum[1];
        }
        wait_for_t_warps<S>();
        if (exists) {
            T sum[2] = {};
#pragma unroll
            for (int l = 0; l < half; ++l)
                sum[l % 2] = fma(t(first + i, first + l), product[(first + l) * Width + j], sum[l % 2]);
            store(first + i, second + j, -(sum[0] + sum[1]));
        }
        if (2 * half < Width) wait_for_t_warps<S>();
    }
}

/// Writes R in the tiles from `first` to `past`, and sets it to zero in the strip. Acts on the first `panels` panels of
/// the strip; `pieces` of them have an image.
template <int panels, class S>
__device__ __forceinline__ void store_r_rows(S& C, const StripShared<S>& s, int first, int past, int tiles,
                                             typename S::Scalar* image, int pieces) {
    using T = typename S::Scalar;
    const StripThread<S> me;
#pragma unroll
    for (int r = 0; r < S::R; ++r) {
        const int t = me.tile(r);
        if (t < first || t >= past) continue;
#pragma unroll
        for (int h = 0; h < S::H * panels; ++h) {
            T(&c)[2] = C.c[r][h];
            const PowerOfTwo<T> scale(s.exponent[me.col(h)]);
            if (h / S::H < pieces) {
                T* const to = image + (Index(h / S::H) * tiles + t) * S::tile + 64 * (h % S::H) + 8 * me.g + 2 * me.q;
                *reinterpret_cast<Pair<T>*>(to) = {{scale * c[0], scale * c[1]}};
            }
            c[0] = c[1] = 0;
        }
    }
}
/// Writes V, from tile `first` on, with its ones, to `image` and to s.V.
template <class S>
__device__ __forceinline__ void store_v(const S& C, StripShared<S>& s, int first, int tiles,
                                        typename S::Scalar* image) {
    using T = typename S::Scalar;
    using Tile = typename StripShared<S>::Tile;
    const StripThread<S> me;
#pragma unroll
    for (int r = 0; r < S::R; ++r) {
        const int t = me.tile(r);
        const bool exists = t >= first && t < tiles;
        if (S::panels == 1 && !exists) continue;
#pragma unroll
        for (int h = 0; h < S::H; ++h) {
            T v[2];
#pragma unroll
            for (int half = 0; half < 2; ++half)
                v[half] = t == first + h && me.g == 2 * me.q + half ? T(1) : C.c[r][h][half];
            typename Tile::Word words[Tile::parts][2];
            Tile::split(words, 0, v[0], v[1]);
            if (S::panels > 1) Tile::store(s.V + me.place(r) * S::tile, me.col(h), me.q, words);
            if (exists) Tile::store(image + Index(t) * S::tile, me.col(h), me.q, words);
        }
    }
}
/// The strip's panels but the first take the place of the one before them.
template <class S>
__device__ __forceinline__ void move_panels_left(S& C, StripShared<S>& s) {
    constexpr int moved = S::columns - S::Width;
    const int e = threadIdx.x < moved ? s.exponent[S::Width + threadIdx.x] : 0;
    __syncthreads();
    if (threadIdx.x < moved) s.exponent[threadIdx.x] = e;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < S::R; ++r) {
#pragma unroll
        for (int h = S::H; h < S::H * S::panels; ++h) {
            C.c[r][h - S::H][0] = C.c[r][h][0];
            C.c[r][h - S::H][1] = C.c[r][h][1];
        }
    }
}

inline constexpr int v_done = 1 << 16;

/// Factors panel `panel` of matrix b, the first in the strip, and says so in done[b].
template <class S>
__device__ __forceinline__ void factor_and_publish(S& C, StripShared<S>& s, Cluster<S>& cluster, const StripSize& size,
                                                   const StripFactors<typename S::Scalar>& F, Index b, int panel,
                                                   int* done) {
    using T = typename S::Scalar;
    const int rank = cluster_rank<S>(), first = panel * S::H, columns = min(S::Width, size.k - panel * S::Width);
    T* const image = image_of<S>(size, F, b, panel);
    T* const r_block = square_of<S>(size, F, b, panel, 0);
    const auto v_stored = [&] {
        if (threadIdx.x == S::threads - 32) add_released(done + b, v_done);
    };
    bool by_gram = false;
    if constexpr (S::by_gram) {
        if (columns == S::Width && size.m - 8 * first >= min_rows_by_gram)
            by_gram = factor_by_gram(C, s, cluster, first, size.tiles, image, r_block, v_stored);
    }
    if (!by_gram) {
        factor_active_rows(C, s, cluster, first, columns);
        store_v(C, s, first, size.tiles, image);
        __syncthreads();
        v_stored();
        for (int x = threadIdx.x; rank == 0 && x < S::Width * S::Width; x += S::threads) {
            const int i = x / S::Width, j = x % S::Width;
            r_block[x] = i > j ? T(0) : PowerOfTwo<T>(s.exponent[j]) * s.part[2][x];
        }
        __syncthreads();
    }
    // while another warp waits until V is known
    if (threadIdx.x / 32 >= S::t_warps) return;
    wait_for_t_warps<S>();
    invert_gram(s, rank == 0, square_of<S>(size, F, b, panel, 1));
    wait_for_t_warps<S>();
    if (threadIdx.x == 0 && rank == 0) add_released(done + b, 1);
    if (rank == 0 && threadIdx.x < columns) F.tau[b * size.k + panel * S::Width + threadIdx.x] = s.tau[threadIdx.x];
}

/// Factors the batch. done[b]: the number of panels of matrix b that have their T, and in units of v_done the number of
/// blocks' parts of V. Tickets go strip by strip through `group` matrices at a time.
template <class S, int blocks>
__global__ void __launch_bounds__(S::threads, blocks)
    factor_strips_kernel(StripSize size, Index group, BatchEntries<const typename S::Scalar> A,
                         StripFactors<typename S::Scalar> F, unsigned long long* next_ticket, int* done, Message* boxes,
                         FiniteCheck check) {
    using T = typename S::Scalar;
    extern __shared__ __align__(16) unsigned char memory[];
    auto& s = *reinterpret_cast<StripShared<S>*>(memory);
    Cluster<S> cluster(s, boxes);
    const Index strips = (size.pieces + S::panels - 1) / S::panels;
    S C;
    for (;;) {
        const Index ticket = cluster.next_ticket(next_ticket);
        if (ticket >= size.count * strips) return;
        const Index in_group = ticket % (group * strips), start = ticket / (group * strips) * group,
                    members = min(group, size.count - start), b = start + in_group % members;
        const int first_piece = static_cast<int>(in_group / members) * S::panels,
                  pieces = min(S::panels, size.pieces - first_piece), before = min(first_piece, size.panels);
        T* const images = image_of<S>(size, F, b, first_piece);
        const PanelCopies<S> copies(size, F, b);
        int ready_v = 0, ready_t = 0;
        bool fetched = false;
        const auto look = [&] {
            const int ready = load_acquired(done + b);
            s.ready_v = ready / (v_done * S::cluster);
            s.ready_t = ready % v_done;
        };
        const bool finite = load_strip(C, s, cluster, A[b], size.m, Index(first_piece) * S::Width, size.n);
        if (check) {
            if (!finite) check.note(b);
            __syncthreads();
            if (threadIdx.x == 0) check.part_is_read(size.count * strips * S::cluster);
        }
        for (int i = 0;; ++i) {
            // all but the last rows of R while the last V is being made
            if (i + 1 >= before) {
                store_r_rows<S::panels>(C, s, i < before ? 0 : (i - 1) * S::H, min(i * S::H, size.tiles), size.tiles,
                                        images, pieces);
            }
            if (i == before) break;
            const auto fetch = [&](int panel, auto chunk) { fetch_chunk(s, copies, panel, chunk, ready_t > panel); };
            if (!fetched) {
                if (ready_v <= i) {
                    __syncthreads();
                    if (threadIdx.x == 0) {
                        for (look(); s.ready_v <= i; look()) __nanosleep(32);
                    }
                    __syncthreads();
                    ready_v = s.ready_v, ready_t = s.ready_t;
                }
                unrolled<S::chunks>([&](auto chunk) {
                    fetch(i, chunk);
                    commit_copies();
                });
            }
            fetched = false;
            apply_panel<S::panels>(
                C, s, cluster, i * S::H, true,
                [&] {
                    if (threadIdx.x % 32 == 0 && ready_t <= min(i + 1, before - 1)) {
                        do {
                            look();
                        } while (s.ready_t <= i);
                    }
                    if (ready_t > i) return;
                    __syncwarp();
                    const auto* const t = reinterpret_cast<const uint4*>(copies.t(i));
                    for (int at = threadIdx.x % 32; at < int(sizeof(s.t) / sizeof(*t)); at += 32)
                        reinterpret_cast<uint4*>(s.t)[at] = t[at];
                },
                [&] {
                    ready_v = s.ready_v, ready_t = s.ready_t;
                    fetched = i + 1 < before && ready_v > i + 1;
                },
                [&](auto chunk) {
                    if (fetched) fetch(i + 1, chunk);
                    commit_copies();
                });
        }
#pragma unroll 1
        for (int of_strip = 0;; ++of_strip) {
            const int panel = first_piece + of_strip;
            if (panel >= size.panels) break;
            factor_and_publish(C, s, cluster, size, F, b, panel, done);
            if (of_strip + 1 >= pieces) break;
            if constexpr (S::panels > 1) {
                move_panels_left(C, s);
                apply_panel<S::panels - 1>(
                    C, s, cluster, panel * S::H, true, [] {}, [] {}, [](auto) {});
                store_r_rows<S::panels - 1>(C, s, panel * S::H, min((panel + 1) * S::H, size.tiles), size.tiles,
                                            images + Index(of_strip + 1) * size.tiles * S::tile, pieces - of_strip - 1);
            }
        }
    }
}

/// to := op(Q) from, p columns. If `upper`, from is [E; 0], E upper triangles of k rows, or I without matrices: only
/// panels up to c/Width change column c.
template <class S, int blocks>
__global__ void __launch_bounds__(S::threads, blocks)
    apply_strips_kernel(StripSize size, StripFactors<typename S::Scalar> F, bool transpose, Index p,
                        BatchEntries<const typename S::Scalar> from, bool upper, BatchEntries<typename S::Scalar> to,
                        Message* boxes) {
    using T = typename S::Scalar;
    extern __shared__ __align__(16) unsigned char memory[];
    auto& s = *reinterpret_cast<StripShared<S>*>(memory);
    const StripThread<S> me;
    Cluster<S> cluster(s, boxes);
    const Index strips = (p + S::columns - 1) / S::columns;
    const bool identity = upper && from.empty();
    for (Index x = blockIdx.x / S::cluster; x < size.count * strips; x += gridDim.x / S::cluster) {
        __syncthreads();
        // one matrix after the other, whose V stays in the L2 cache; of a triangle the last columns take longest
        const Index b = x / strips, strip = strips - 1 - x % strips, first_col = strip * S::columns;
        S C;
        if (identity) {
            constexpr int e = 7;
#pragma unroll
            for (int r = 0; r < S::R; ++r) {
#pragma unroll
                for (int h = 0; h < S::H * S::panels; ++h) {
                    C.c[r][h][0] = me.row(r, 0) == first_col + me.col(h) ? 1 << e : 0;
                    C.c[r][h][1] = me.row(r, 1) == first_col + me.col(h) ? 1 << e : 0;
                }
            }
            if (threadIdx.x < S::columns) s.exponent[threadIdx.x] = -e;
            __syncthreads();
        } else {
            const Index rows = upper ? min(Index(size.k), first_col + S::columns) : size.m;
            load_strip(C, s, cluster, from[b], static_cast<int>(rows), first_col, p);
        }
        const int panels = upper ? static_cast<int>(min(Index(size.panels), (strip + 1) * S::panels)) : size.panels;
        const PanelCopies<S> copies(size, F, b);
        const auto fetch = [&](int step, auto chunk) {
            if (step < panels) fetch_chunk(s, copies, transpose ? step : panels - 1 - step, chunk, true);
            commit_copies();
        };
        unrolled<S::chunks>([&](auto chunk) { fetch(0, chunk); });
        for (int step = 0; step < panels; ++step) {
            apply_panel<S::panels>(
                C, s, cluster, (transpose ? step : panels - 1 - step) * S::H, transpose, [] {}, [] {},
                [&](auto chunk) { fetch(step + 1, chunk); });
        }
        const auto target = to[b];
#pragma unroll
        for (int h = 0; h < S::H * S::panels; ++h) {
            const Index col = first_col + me.col(h);
            const PowerOfTwo<T> scale(s.exponent[me.col(h)]);
            const PairedRows<T> column(target.data + col * target.col_stride, target.row_stride, col < p ? size.m : 0);
#pragma unroll
            for (int r = 0; r < S::R; ++r) column.store(me.row(r, 0), {{scale * C.c[r][h][0], scale * C.c[r][h][1]}});
        }
    }
}

}  // namespace quoin::cuda::strips
