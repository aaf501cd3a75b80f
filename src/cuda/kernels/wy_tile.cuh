#pragma once

// C := op(H) C for one tile of rows, H = I − V T Vᵀ with V and T in shared memory and C in registers:
//
//     W = VᵀC,  W := op(T) W,  C −= V W       by f64 tensor-core products of 16×8 by 8×8, transposed: Wᵀ = CᵀV
//
// f32 data takes the same path: V and T are widened once, when they are staged, C when it becomes an operand. DMMA and
// FFMA have one peak on Hopper (66 TFLOP/s measured for m16n8k8, 33 for m8n8k4), and the sums are then exact to f32.
//
//     who owns what     a warp owns 16 columns of C and all its rows, so W never leaves its registers; lane (g, t) =
//                       (lane / 4, lane % 4) holds rows 8b + 2t, 8b + 2t + 1 of columns g and g + 8:
//                       c[b] = {C(8b+2t, g), C(8b+2t+1, g), C(8b+2t, g+8), C(8b+2t+1, g+8)}: the accumulator of
//                       Cᵀ −= WᵀVᵀ, and, with the rows of V taken in the order 0 2 4 6 1 3 5 7, the left operand of CᵀV
//     shared            V (rows + 4)×32 and T 36×32 doubles: 33 KB + 9 KB with 128 rows. Element (i, j) stands at
//                       σ(j)·ld + σ(i), σ swapping 4↔5 and 6↔7: both access patterns (rows 2t + s of column g, row g of
//                       columns 2t + s) then touch each bank once
//     flops             4·h·n·p; a fragment of V (2 loads of 8 bytes a lane) serves 1024 multiply-adds

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "geometry.cuh"

namespace quoin::cuda {

/// Columns of C that one warp owns.
inline constexpr int strip_cols = 16;

__device__ inline int swizzle(int i) { return i ^ ((i >> 2) & 1); }

/// Volatile: kept from one product to the next, a widened C would hold three registers where one will do.
__device__ inline double widen(float x) {
    double y;
    asm volatile("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x));
    return y;
}
__device__ inline double widen(double x) { return x; }

/// d += a b (16×8 += 16×8 · 8×8), row by column: one m16n8k8 where `wide`, else four m8n8k4 at half the rate. With f64
/// data the wide one (and m16n8k4) gave wrong columns 8 to 15 on an H100 from nvcc 13.0, though its PTX reads right; the
/// cause is not found. So it is taken only where speed needs it and it was seen right: apply_leaf on f32.
template <bool wide>
__device__ inline void multiply_add(double (&d)[4], const double (&a)[4], double b0, double b1) {
    if constexpr (wide) {
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
    } else {
        const double b[2] = {b0, b1};
#pragma unroll
        for (int s = 0; s < 2; ++s) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                             : "+d"(d[2 * half]), "+d"(d[2 * half + 1])
                             : "d"(a[2 * s + half]), "d"(b[s]));
            }
        }
    }
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
    /// (8i + 2t + s, 8j + g)
    __device__ double down(int i, int j, int s) const { return data[rows_first[s] + 8 * i + 8 * j * ld]; }
    /// (8i + g, 8j + 2t + s)
    __device__ double across(int i, int j, int s) const { return data[cols_first[s] + 8 * i + 8 * j * ld]; }
};

enum class Shape { Leaf, Rectangle, Triangle };

/// The h×n reflectors at `V` and their T, widened and padded with zeros to rows×32 and 32×32: a leaf with its unit lower
/// triangle, a rectangle, or a triangle. By the whole block; all loads of a batch are in flight before its first store.
template <int rows, class T>
__device__ inline void stage(Shape shape, const T* V, Index ldv, int h, int n, const T* Tk, Index ldt, double* staged_v,
                             double* staged_t) {
    constexpr int batch = 4;
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int first = threadIdx.x / 32; first < tile_width; first += batch * warps) {
        T v[batch][rows / 32], t[batch];
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            const int c = first + i * warps;
            t[i] = lane <= c && c < n ? Tk[lane + c * ldt] : T(0);
#pragma unroll
            for (int b = 0; b < rows / 32; ++b) {
                const int r = 32 * b + lane;
                const bool stored =
                    r < h && c < n && (shape == Shape::Rectangle || (shape == Shape::Leaf ? r > c : r <= c));
                v[i][b] = stored ? V[r + c * ldv] : T(shape == Shape::Leaf && r == c && c < n);
            }
        }
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            const int c = first + i * warps;
            if (c >= tile_width) break;
            staged_t[swizzle(c) * Staged<tile_width>::ld + swizzle(lane)] = t[i];
#pragma unroll
            for (int b = 0; b < rows / 32; ++b) {
                staged_v[swizzle(c) * Staged<rows>::ld + swizzle(32 * b + lane)] = v[i][b];
            }
        }
    }
}

using Block = double[4];  // 16 columns × 8 rows of a warp's strip

/// The left operand of a product over the block's rows.
template <class T>
__device__ inline void operand(const T (&c)[4], double (&a)[4]) {
    a[0] = widen(c[0]);
    a[1] = widen(c[2]);
    a[2] = widen(c[1]);
    a[3] = widen(c[3]);
}

/// Wᵀ += CᵀV over `blocks` row blocks.
template <bool wide, int rows, int blocks, class T>
__device__ inline void inner(const Staged<rows>& V, const T (&c)[blocks][4], Block (&W)[4]) {
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
        double a[4];
        operand(c[b], a);
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply_add<wide>(W[j], a, V.down(b, j, 0), V.down(b, j, 1));
    }
}

/// W := −op(T) W in place: a block of W is needed by the blocks on one side of it only.
template <bool wide, bool transpose>
__device__ inline void multiply_t(const Staged<32>& Tk, Block (&W)[4]) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        const int j = transpose ? 3 - step : step;
        double sum[4] = {};
#pragma unroll
        for (int k = transpose ? 0 : j; k < (transpose ? j + 1 : 4); ++k) {
            double a[4];
            operand(W[k], a);
            if constexpr (transpose) {
                multiply_add<wide>(sum, a, Tk.down(k, j, 0), Tk.down(k, j, 1));
            } else {
                multiply_add<wide>(sum, a, Tk.across(j, k, 0), Tk.across(j, k, 1));
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) W[j][i] = -sum[i];
    }
}

/// Cᵀ += WᵀVᵀ, row blocks b and b + 1: two independent chains of products.
template <bool wide, int rows, class T>
__device__ inline void outer(const Staged<rows>& V, const Block (&W)[4], int b, T (&c0)[4], T (&c1)[4]) {
    double sum0[4] = {widen(c0[0]), widen(c0[1]), widen(c0[2]), widen(c0[3])};
    double sum1[4] = {widen(c1[0]), widen(c1[1]), widen(c1[2]), widen(c1[3])};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        double a[4];
        operand(W[k], a);
        multiply_add<wide>(sum0, a, V.across(b, k, 0), V.across(b, k, 1));
        multiply_add<wide>(sum1, a, V.across(b + 1, k, 0), V.across(b + 1, k, 1));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        c0[i] = static_cast<T>(sum0[i]);
        c1[i] = static_cast<T>(sum1[i]);
    }
}

/// The 16 columns of C that a warp owns, the first at `C`, of which `cols` exist. `h` rows exist.
template <class T>
struct Strip {
    T* lane_c;  // C(2t, g): what the lane holds lies at constant distances from here and from 8 columns on
    Index ld;
    int cols;
    using Pair = std::conditional_t<sizeof(T) == 4, float2, double2>;

    __device__ Strip(T* C, Index ld_, int cols_) : lane_c(C + row(0, 0) + col(0) * ld_), ld(ld_), cols(cols_) {}

    __device__ static int row(int b, int i) { return 8 * b + 2 * static_cast<int>(threadIdx.x % 4) + i % 2; }
    __device__ static int col(int i) { return static_cast<int>(threadIdx.x % 32 / 4) + i / 2 * 8; }
    __device__ T& at(int b, int i) const { return lane_c[i / 2 * (8 * ld) + (8 * b + i % 2)]; }
    __device__ Pair& pair_at(int b, int i) const { return reinterpret_cast<Pair&>(at(b, i)); }
    /// May all of `rows` rows move in pairs? The same for the whole warp.
    __device__ bool in_pairs(int h, int rows) const {
        const bool aligned = reinterpret_cast<std::size_t>(lane_c) % sizeof(Pair) == 0 && ld % 2 == 0;
        return h == rows && cols == strip_cols && __all_sync(~0u, aligned);
    }
    /// Blocks first, first + 1, …; zeros outside.
    template <int blocks>
    __device__ void load(int first, int h, T (&c)[blocks][4]) const {
        if (in_pairs(h, 8 * blocks)) {
#pragma unroll
            for (int b = 0; b < blocks; ++b) {
                if (b < first) continue;
                const Pair left = pair_at(b, 0), right = pair_at(b, 2);
                c[b][0] = left.x, c[b][1] = left.y, c[b][2] = right.x, c[b][3] = right.y;
            }
        } else {
#pragma unroll
            for (int b = 0; b < blocks; ++b) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (b >= first) c[b][i] = row(b, i) < h && col(i) < cols ? at(b, i) : T(0);
                }
            }
        }
    }
    template <int blocks>
    __device__ void store(int first, int h, const T (&c)[blocks][4]) const {
        const bool pairs = in_pairs(h, 8 * blocks);
#pragma unroll
        for (int b = 0; b < blocks; ++b) {
            if (b >= first) store_block(pairs, b, h, c[b]);
        }
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

}  // namespace quoin::cuda
