#pragma once

// The tensor cores' products of strips (strips.cuh): 16×8 tiles D := D + A B by one warp, lane 4g + q with
//
//     D(g, 2q), D(g, 2q+1), D(g+8, 2q), D(g+8, 2q+1).
//
// f64 has products of depth 8. f32 takes three for one, hi·hi + hi·lo + lo·hi of x = hi + lo (Ootomo and Yokota 2022):
//
//     f16, depth 16    |x − hi − lo| <= 2⁻²³|x| + 2⁻²⁵, for numbers whose sizes are known: V and the columns of a strip
//     TF32, depth 8    |x − hi − lo| <= 2⁻²²|x|, for all of f32's range: T and W, once a panel
//
// In f32 tensor cores round sums towards zero: a column that took every product into its own accumulator would lose
// length with each. Sums start from zero instead, and are added with rounding to nearest. In f64 they round to nearest.

#include "cuda/arch/sm80_dmma.cuh"
#include "cuda/arch/sm80_mma.cuh"
#include "cuda/products/halves.cuh"

namespace quoin::cuda::strips {

/// N registers of an operand that a lane has.
template <class T, int N>
struct Operand;
template <int N>
struct Operand<double, N> {
    __device__ __forceinline__ void set(int i, double x) { v[i] = x; }
    double v[N] = {};
};
/// An operand of f32: pairs of f16, or numbers of TF32.
template <int N>
struct Operand<float, N> {
    /// Register i, two neighbours of a sum, in f16.
    __device__ __forceinline__ void set(int i, float x, float y) { halves_of_pair(x, y, hi[i], lo[i]); }
    /// Register i in TF32, hi rounded to 11 bits.
    __device__ __forceinline__ void set(int i, float x) {
        hi[i] = (__float_as_uint(x) + 0x1000) & 0xffffe000;
        lo[i] = __float_as_uint(x - __uint_as_float(hi[i]));
    }
    unsigned hi[N] = {}, lo[N] = {};
};

/// The products that make one of operands of T. A pass waits for the one before it: others belong between them.
template <class T>
inline constexpr int passes = std::is_same_v<T, float> ? 3 : 1;

using cuda::multiply_add_tf32;
/// D := D + A B of depth 8 in f64, by the name of the product that f32 has of this depth.
__device__ __forceinline__ void multiply_add_tf32(double (&D)[4], const double (&A)[4], const double (&B)[2]) {
    cuda::multiply_add(D, A, B);
}

/// Which part of an operand a pass multiplies: lo·hi, hi·lo, hi·hi; f64 has one pass.
template <int N>
__device__ __forceinline__ const unsigned (&left_of(int pass, const Operand<float, N>& A))[N] {
    return pass == 0 ? A.lo : A.hi;
}
template <int N>
__device__ __forceinline__ const unsigned (&right_of(int pass, const Operand<float, N>& B))[N] {
    return pass == 1 ? B.lo : B.hi;
}
template <int N>
__device__ __forceinline__ const double (&left_of(int, const Operand<double, N>& A))[N] {
    return A.v;
}
template <int N>
__device__ __forceinline__ const double (&right_of(int, const Operand<double, N>& B))[N] {
    return B.v;
}

/// V in tiles of 8 rows and `Width` columns, as it lies in memory: f64 column after column, f32 as 2⁴V in f16, all of
/// hi before all of lo. |v| <= 1, so that hi + lo is 2⁴v to 2⁻²³|2⁴v| + 2⁻²⁵. `lift`: by how much Λ⁻¹
/// (reflectors_by_gram.cuh), |Λ⁻¹| <= 2⁴, is larger as an operand.
template <class T, int Width>
struct ReflectorTile;

template <int Width>
struct ReflectorTile<double, Width> {
    /// Depth of products; tiles that one sums over; words of an entry; how the tensor cores round.
    static constexpr int depth = 8, tiles = 1, parts = 1;
    static constexpr bool rounds_to_nearest = true;
    static constexpr double scale = 1, lift = 1;

    using Word = double;
    /// Rows 2q, 2q + 1 of a column as words of both operands of XᵀX, by parts and depth: of tile `x` of those that are
    /// summed over.
    __device__ __forceinline__ static void split(double (&words)[1][2], int, double above, double below) {
        words[0][0] = above;
        words[0][1] = below;
    }
    __device__ __forceinline__ static void store(double* tile, int col, int q, const double (&words)[1][2], int = 0) {
        reinterpret_cast<double2*>(tile)[unit(col, q)] = {words[0][0], words[0][1]};
    }
    /// x := column `col`, 8 rows.
    __device__ static void load_column(const double* tile, int col, double (&x)[8]) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const double2 some = reinterpret_cast<const double2*>(tile)[unit(col, q)];
            x[2 * q] = some.x, x[2 * q + 1] = some.y;
        }
    }
    /// Columns 16mi, … of a tile as A of VᵀC, by rows 2q, 2q + 1; what `left_of` has of it in this pass.
    __device__ __forceinline__ static void load_left(double (&a)[4], const double* tile, int, bool, int mi, int,
                                                     int lane) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const double2 v = reinterpret_cast<const double2*>(tile + 64 * (2 * mi + half))[unit(lane / 4, lane % 4)];
            a[half] = v.x;
            a[half + 2] = v.y;
        }
    }
    /// Columns 8kk, … as B of UᵀVᵀ.
    __device__ __forceinline__ static Operand<double, 2> right(const double* tile, int kk, int lane) {
        const int g = lane / 4, q = lane % 4;
        const double* const from = tile + 64 * kk + 2 * unit(q, g / 2) + g % 2;
        Operand<double, 2> b;
        b.set(0, from[0]);
        b.set(1, from[32]);
        return b;
    }

private:
    /// Where rows 2q, 2q + 1 of a column are, in units of 16 bytes: so that rows of four columns are in different
    /// banks.
    __device__ __forceinline__ static int unit(int col, int q) { return 4 * col + (q ^ (col & 2)); }
};

template <int Width>
struct ReflectorTile<float, Width> {
    static constexpr int depth = 16, tiles = 2, parts = 2;
    static constexpr bool rounds_to_nearest = false;
    static constexpr float scale = 16, lift = 1024;

    using Word = unsigned;
    __device__ __forceinline__ static void split(unsigned (&words)[2][2], int x, float above, float below) {
        Operand<float, 1> pair;
        pair.set(0, scale * above, scale * below);
        words[0][x] = pair.hi[0];
        words[1][x] = pair.lo[0];
    }
    __device__ __forceinline__ static void store(float* tile, int col, int q, const unsigned (&words)[2][2],
                                                 int x = 0) {
        reinterpret_cast<unsigned*>(tile)[4 * col + q] = words[0][x];
        reinterpret_cast<unsigned*>(tile)[4 * (Width + col) + q] = words[1][x];
    }
    __device__ static void load_column(const float* tile, int col, float (&x)[8]) {
        const uint4 hi = reinterpret_cast<const uint4*>(tile)[col],
                    lo = reinterpret_cast<const uint4*>(tile)[Width + col];
        const auto *const high = reinterpret_cast<const __half2*>(&hi), *const low =
                                                                            reinterpret_cast<const __half2*>(&lo);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 h = __half22float2(high[i]), l = __half22float2(low[i]);
            x[2 * i] = (h.x + l.x) / scale, x[2 * i + 1] = (h.y + l.y) / scale;
        }
    }
    /// Loads from this tile and, if it exists, from the one `next` entries further on.
    __device__ __forceinline__ static void load_left(unsigned (&a)[4], const float* tile, int next, bool has_next,
                                                     int mi, int pass, int lane) {
        const float* const own = tile + (has_next && lane >= 16 ? next : 0);
        const int column = (pass == 0 ? Width : 0) + 16 * mi + lane % 16;
        load_matrices<false>(a, static_cast<unsigned>(__cvta_generic_to_shared(own)) + 16 * column);
        if (!has_next) a[2] = a[3] = 0;
    }
    /// Columns 16kk, …
    __device__ __forceinline__ static Operand<float, 2> right(const float* tile, int kk, int lane) {
        const unsigned at =
            static_cast<unsigned>(__cvta_generic_to_shared(tile)) + 16 * (lane / 16 * Width + 16 * kk + lane % 16);
        unsigned words[4];
        load_matrices<true>(words, at);
        Operand<float, 2> b;
        b.hi[0] = words[0], b.hi[1] = words[1], b.lo[0] = words[2], b.lo[1] = words[3];
        return b;
    }
};

/// Uᵀ, columns×Width, as operands A in shared memory, each lane's registers side by side: its columns depth·kk, … and
/// rows 16mi, … in operand (kk, mi).
template <class T, int Width, int columns>
struct UpdateOperands;

template <int Width, int columns>
struct UpdateOperands<double, Width, columns> {
    static constexpr int M = columns / 16, count = Width / 8 * M;
    /// Entry x of the product's tile (mi, h) of U.
    __device__ __forceinline__ void set(int mi, int h, int x, int lane, double u) {
        const int g = lane / 4, q = lane % 4, to_lane = 4 * (2 * q + x % 2) + g % 4;
        v[((2 * mi + x / 2) * M + h / 2) * 2 + g / 4][to_lane][h % 2] = u;
    }
    __device__ __forceinline__ Operand<double, 4> get(int kk, int mi, int lane) const {
        const int of = kk * M + mi;
        const auto low = *reinterpret_cast<const double2*>(v[2 * of][lane]),
                   high = *reinterpret_cast<const double2*>(v[2 * of + 1][lane]);
        return {{low.x, low.y, high.x, high.y}};
    }
    alignas(16) double v[2 * count][32][2];
};

template <int Width, int columns>
struct UpdateOperands<float, Width, columns> {
    static constexpr int M = columns / 16, count = Width / 16 * M;
    __device__ __forceinline__ void set(int mi, int h, int x, int lane, float u) {
        const int g = lane / 4, q = lane % 4, to_lane = 4 * (2 * q + x % 2) + g / 2;
        const int at = (((mi * M + h / 2) * 32 + to_lane) * 4 + h % 2 + 2 * (x / 2)) * 2 + g % 2;
        hi[at] = __float2half_rn(u);
        lo[at] = __float2half_rn(u - __half2float(hi[at]));
    }
    __device__ __forceinline__ Operand<float, 4> get(int kk, int mi, int lane) const {
        const int of = kk * M + mi;
        const uint4 h = reinterpret_cast<const uint4*>(hi)[of * 32 + lane],
                    l = reinterpret_cast<const uint4*>(lo)[of * 32 + lane];
        return {{h.x, h.y, h.z, h.w}, {l.x, l.y, l.z, l.w}};
    }
    alignas(16) __half hi[count * 256], lo[count * 256];
};

}  // namespace quoin::cuda::strips
