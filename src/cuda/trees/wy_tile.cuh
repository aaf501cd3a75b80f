#pragma once

// C := op(H) C for one tile of rows, H = I − V T Vᵀ with V and T in shared memory:
//
//     W = VᵀC,  W := op(T) W,  C −= V W       by f64 tensor-core products (sm90_dmma.cuh), transposed: Wᵀ = CᵀV
//
// f32 data takes the same path: V and T are widened once, when they are staged, C when it becomes an operand. DMMA and
// FFMA have one peak on Hopper, and the sums are then exact to f32.
//
//     who owns what     a warp owns 16 columns of C and all its rows, so W never leaves its registers; lane (g, t) =
//                       (lane / 4, lane % 4) holds rows 8b + 2t, 8b + 2t + 1 of columns g and g + 8:
//                       c[b] = {C(8b+2t, g), C(8b+2t+1, g), C(8b+2t, g+8), C(8b+2t+1, g+8)}: the accumulator of
//                       Cᵀ −= WᵀVᵀ, and, with (κ, κ') = (2t, 2t+1), the left operand of CᵀV
//     shared            V (rows + 4)×32 and T 36×32 doubles: 33 KB + 9 KB with 128 rows. Element (i, j) stands at
//                       σ(j)·ld + σ(i), σ swapping 4↔5 and 6↔7: both access patterns (rows 2t + s of column g, row g of
//                       columns 2t + s) then touch each bank once
//     flops             4·h·n·p; a fragment of V (2 loads of 8 bytes a lane) serves 1024 multiply-adds

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "cuda/arch/sm70_registers.cuh"
#include "cuda/arch/sm90_dmma.cuh"
#include "cuda/trees/geometry.cuh"

namespace quoin::cuda {

/// Columns of C that one warp owns.
inline constexpr int strip_cols = 16;

__device__ inline int swizzle(int i) { return i ^ ((i >> 2) & 1); }

/// Returns a lane's entries of 8 rows of a strip as an accumulator.
template <class T>
__device__ inline Tile16x8 widen(const T (&c)[4]) {
    return {{widened(c[0]), widened(c[1]), widened(c[2]), widened(c[3])}};
}
template <class T>
__device__ inline void narrow(const Tile16x8& tile, T (&c)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] = static_cast<T>(tile.v[i]);
}

/// A staged matrix of `rows` rows (a multiple of 16) as the lane's fragments see it.
template <int rows>
struct Staged {
    static constexpr int ld = rows + 4, size = ld * tile_width;
    const double* data;
    int rows_first[2], cols_first[2];  // where (2t + s, g) and (g, 2t + s) stand

    __device__ explicit Staged(const double* data_) : data(data_) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        for (int s = 0; s < 2; ++s) {
            rows_first[s] = swizzle(g) * ld + swizzle(2 * t + s);
            cols_first[s] = swizzle(2 * t + s) * ld + swizzle(g);
        }
    }
    /// Block (i, j): rows 8i + 2t + s of column 8j + g.
    __device__ Tile8x8 down(int i, int j) const {
        const double* block = data + 8 * i + 8 * j * ld;
        return {{block[rows_first[0]], block[rows_first[1]]}};
    }
    /// Its transpose: row 8i + g of columns 8j + 2t + s.
    __device__ Tile8x8 across(int i, int j) const {
        const double* block = data + 8 * i + 8 * j * ld;
        return {{block[cols_first[0]], block[cols_first[1]]}};
    }
};

enum class Shape { Leaf, Rectangle, Triangle };

/// h×n elements in memory: a leaf's reflectors with their unit lower triangle, a rectangle, or an upper triangle with
/// `below` more rows under its diagonal.
template <class T>
struct Source {
    Shape shape;
    const T* data;
    Index ld;
    int h, n;
    int below = 0;
};

/// Copies columns to a Staged matrix, every 32nd row by the same lane, widened and padded with zeros to rows×32.
/// `warps` warps share the work; this is number `warp`. The loads of a batch are in flight before its first store.
template <int rows, class T>
__device__ inline void stage(const Source<T>& from, double* staged, int warp, int warps) {
    constexpr int batch = std::min(16, 4096 / (rows * int(sizeof(T))));
    const int lane = threadIdx.x % 32;
    const bool whole = from.shape == Shape::Rectangle && from.h >= rows && from.n == tile_width;
    for (int first = warp; first < tile_width; first += batch * warps) {
        T v[batch][rows / 32];
        if (whole) {
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                const T* const column = from.data + lane + min(first + i * warps, tile_width - 1) * from.ld;
#pragma unroll
                for (int b = 0; b < rows / 32; ++b) v[i][b] = column[32 * b];
            }
        } else {
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                const int c = first + i * warps;
#pragma unroll
                for (int b = 0; b < rows / 32; ++b) {
                    const int r = 32 * b + lane;
                    const bool stored =
                        r < from.h && c < from.n &&
                        (from.shape == Shape::Rectangle || (from.shape == Shape::Leaf ? r > c : r <= c + from.below));
                    v[i][b] =
                        stored ? from.data[r + c * from.ld] : T(from.shape == Shape::Leaf && r == c && c < from.n);
                }
            }
        }
        __syncwarp();  // the compiler would sink each load to its store
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            const int c = first + i * warps;
            if (c >= tile_width) break;
#pragma unroll
            for (int b = 0; b < rows / 32; ++b) {
                staged[swizzle(c) * Staged<rows>::ld + 32 * b + swizzle(lane)] = v[i][b];
            }
        }
    }
}

/// Shared memory of a leaf's V, followed by T.
template <int rows>
inline constexpr int reflector_doubles = Staged<rows>::size + Staged<tile_width>::size;

/// The reflectors of leaf t of domain d, and their T.
template <class T>
struct LeafReflectors {
    Source<T> V, Tk;

    __device__ LeafReflectors(const TreeGeometry& tree, Index d, Index t, const T* A, Index lda, const T* Tf, Index ldt)
        : V{t == 0 ? Shape::Leaf : Shape::Rectangle, A + tree.leaf_begin(d, t), lda, tree.leaf_size(d, t),
            static_cast<int>(tree.width)},
          Tk{Shape::Rectangle, Tf + tree.t_of_leaf(d, t) * ldt, ldt, static_cast<int>(tree.width),
             static_cast<int>(tree.width)} {}
};

/// Wᵀ += CᵀV over row blocks first, first + 1, ….
template <int rows, int blocks, class T>
__device__ inline void inner(const Staged<rows>& V, int first, const T (&c)[blocks][4], Tile16x8 (&W)[4]) {
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
        const Tile16x8 A = as_left_operand(widen(c[b]));
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply_add(W[j], A, V.down(first + b, j));
    }
}

/// W := op(T) W in place: a block of W is needed by the blocks on one side of it only.
template <bool transpose>
__device__ inline void multiply_t(const Staged<tile_width>& Tk, Tile16x8 (&W)[4]) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        const int j = transpose ? 3 - step : step;
        Tile16x8 sum = {};
#pragma unroll
        for (int k = transpose ? 0 : j; k < (transpose ? j + 1 : 4); ++k) {
            multiply_add(sum, as_left_operand(W[k]), transpose ? Tk.down(k, j) : Tk.across(j, k));
        }
        W[j] = sum;
    }
}

/// W := −W, laid out as the left operand of `outer`. A product with a number that the compiler does not know (n > 0): a
/// mere negation it would leave to the operands, and copy W into their order for every one of them.
__device__ inline void turn_left(Tile16x8 (&W)[4], int n) {
    const double minus_one = n > 0 ? -1.0 : 0.0;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
        W[b] = as_left_operand(
            {{W[b].v[0] * minus_one, W[b].v[1] * minus_one, W[b].v[2] * minus_one, W[b].v[3] * minus_one}});
    }
}

/// Cᵀ −= WᵀVᵀ over row blocks first, first + 1, …: independent chains of products. W is turned left.
template <int rows, int blocks, class T>
__device__ inline void outer(const Staged<rows>& V, const Tile16x8 (&W)[4], int first, T (&c)[blocks][4]) {
    Tile16x8 sums[blocks];
#pragma unroll
    for (int b = 0; b < blocks; ++b) sums[b] = widen(c[b]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int b = 0; b < blocks; ++b) multiply_add(sums[b], W[k], V.across(first + b, k));
    }
#pragma unroll
    for (int b = 0; b < blocks; ++b) narrow(sums[b], c[b]);
}

/// top := top − W.
template <class T>
__device__ inline void subtract_from_top(const Tile16x8 (&W)[4], T (&top)[4][4]) {
#pragma unroll
    for (int b = 0; b < 4; ++b) {
#pragma unroll
        for (int i = 0; i < 4; ++i) top[b][i] = static_cast<T>(top[b][i] - W[b].v[i]);
    }
}

/// The 16 columns of C that a warp owns, the first at `C`. `cols` columns and `h` rows exist.
template <class T>
struct Strip {
    T* lane_c;  // C(2t, g): what the lane holds lies at constant distances from here and from 8 columns on
    Index ld;
    int cols;
    using Pair = std::conditional_t<std::is_same_v<T, float>, float2, double2>;

    __device__ Strip(T* C, Index ld_, int cols_) : lane_c(C + row(0, 0) + col(0) * ld_), ld(ld_), cols(cols_) {}

    /// Returns the same columns from row `rows` on.
    __device__ Strip below(int rows) const {
        Strip strip = *this;
        strip.lane_c += rows;
        return strip;
    }

    __device__ static int row(int b, int i) { return 8 * b + 2 * static_cast<int>(threadIdx.x % 4) + i % 2; }
    __device__ static int col(int i) { return static_cast<int>(threadIdx.x % 32 / 4) + i / 2 * 8; }
    __device__ T& at(int b, int i) const { return lane_c[i / 2 * (8 * ld) + (8 * b + i % 2)]; }
    __device__ Pair& pair_at(int b, int i) const { return reinterpret_cast<Pair&>(at(b, i)); }
    /// May all of `rows` rows move in pairs? The same for the whole warp.
    __device__ bool in_pairs(int h, int rows) const {
        const bool aligned = reinterpret_cast<std::size_t>(lane_c) % sizeof(Pair) == 0 && ld % 2 == 0;
        return h >= rows && cols == strip_cols && __all_sync(~0u, aligned);
    }
    /// Zeros outside.
    template <int blocks>
    __device__ void load(int h, T (&c)[blocks][4]) const {
        if (in_pairs(h, 8 * blocks)) {
#pragma unroll
            for (int b = 0; b < blocks; ++b) {
                const Pair left = pair_at(b, 0), right = pair_at(b, 2);
                c[b][0] = left.x, c[b][1] = left.y, c[b][2] = right.x, c[b][3] = right.y;
            }
        } else {
#pragma unroll
            for (int b = 0; b < blocks; ++b) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    c[b][i] = row(b, i) < h && col(i) < cols ? at(b, i) : T(0);
                }
            }
        }
    }
    template <int blocks>
    __device__ void store(int h, const T (&c)[blocks][4]) const {
        const bool pairs = in_pairs(h, 8 * blocks);
#pragma unroll
        for (int b = 0; b < blocks; ++b) store_block(pairs, b, h, c[b]);
    }
    __device__ void store_block(bool pairs, int b, int h, const T (&c)[4]) const {
        if (pairs) {
            pair_at(b, 0) = Pair{c[0], c[1]};
            pair_at(b, 2) = Pair{c[2], c[3]};
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (row(b, i) < h && col(i) < cols) at(b, i) = c[i];
            }
        }
    }
    /// The upper triangle alone, where the strip starts at column `first_col` of it: rows <= column.
    __device__ void load_upper(int first_col, T (&c)[4][4]) const {
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                c[b][i] = row(b, i) <= first_col + col(i) && col(i) < cols ? at(b, i) : T(0);
            }
        }
    }
    __device__ void store_upper(int first_col, const T (&c)[4][4]) const {
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (row(b, i) <= first_col + col(i) && col(i) < cols) at(b, i) = c[b][i];
            }
        }
    }
};

/// [E; Q_t] := H [E; 0] for leaf t > 0, and Q_0 = H [E; 0] for leaf 0: a strip's rows [first, last) of `leaf`. h rows
/// exist. Every warp of the strip holds E.
template <int rows, class T>
__device__ inline void form_rows(const double* V, const double* Tk, Index t, int n, const Strip<T>& leaf, int h,
                                 int first, int last, T (&E)[4][4]) {
    Tile16x8 W[4] = {};
    if (t == 0) {
        inner(Staged<rows>(V), 0, E, W);
    } else {
#pragma unroll
        for (int b = 0; b < 4; ++b) W[b] = widen(E[b]);
    }
    multiply_t<false>(Staged<tile_width>(Tk), W);
    if (t > 0) subtract_from_top(W, E);
    turn_left(W, n);
#pragma unroll 1
    for (int row = first; row < last; row += 16) {
        T q[2][4] = {};
#pragma unroll
        for (int b = 0; b < 4; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (t == 0 && row == b / 2 * 16) q[b % 2][i] = E[b][i];
            }
        }
        outer(Staged<rows>(V + row), W, 0, q);
        leaf.below(row).store(h - row, q);
    }
}

}  // namespace quoin::cuda
