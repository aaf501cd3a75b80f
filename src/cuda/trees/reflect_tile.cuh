#pragma once

// Householder factorization of one tile that lives in the registers of one block, column by column; the mathematics of
// host/block_reflector.hpp (reflect_column, join_t). `factor_leaf_kernel` and `factor_node_kernel` are made of it.
//
//     leaf:     A = H [R; 0]          A (height·warps)×32, zero rows and columns pad it
//     stacked:  [R; B] = H [R'; 0]    R 32×32 in shared memory, B the tile
//
//     who owns what     a warp holds `height` rows, 32 or 64, of all 32 columns. Lane (g, q) = (lane % 8, lane / 8)
//                       holds columns g, g + 8, g + 16, g + 24 of a quarter of the rows, 16 bytes of every 64: a[k][r]
//                       = A(4v⌊r/v⌋ + vq + r mod v, g + 8k), v elements to 16 bytes. x, `height` elements a warp, is
//                       broadcast from shared memory: an element read serves four columns. Lane c holds the per-column
//                       values of column c: xᵀA, w, and its entry of a row of R
//     one step          one sum over quarters and warps (one barrier) gives xᵀ[V C] for all columns at once: column j
//                       is the norm, the columns right of it the update, the columns left of it V(:, 0:j)ᵀ v_j for T
//     T                 T₁₂ = −T₁ (V₁ᵀV₂) T₂ from blocks of 1, 2, 4, 8, 16 columns, all blocks of one size at once
//     columns           V of column j stays x_j in registers, together with its scale; v_j leaves for memory at step j
//     flops             3·h·n² for V and R, h·n² for T, of them 3¼·h·n² issued; bounded by issue slots and the latency
//                       of n dependent steps, hidden by the other blocks of the multiprocessor

#include <cuda_runtime.h>

#include <cfloat>

#include "cuda/arch/sm80_copy_async.cuh"
#include "cuda/trees/geometry.cuh"

namespace quoin::cuda {

template <class T>
struct Float;
template <>
struct Float<float> {
    static constexpr float u = FLT_EPSILON / 2, least = FLT_MIN, most = FLT_MAX;
    using Vector = float4;
};
template <>
struct Float<double> {
    static constexpr double u = DBL_EPSILON / 2, least = DBL_MIN, most = DBL_MAX;
    using Vector = double2;
};

/// The sums of squares between which a norm may be computed without scaling (SafeSquares of the host).
template <class T>
inline constexpr T safe_low = Float<T>::least / (Float<T>::u * Float<T>::u);
template <class T>
inline constexpr T safe_high = Float<T>::most*(Float<T>::u* Float<T>::u);

template <class T, int warps, int height>
struct ReflectShared {
    alignas(16) T x[2][warps * height];
    T part[2][warps][32];
    T pivot[2][32];
    T largest[warps];
    T R[32][33];
    T Tk[32][33];    // column j: V(:, 0:j)ᵀ v_j above tau_j, then T
    T work[32][33];  // of `join_t`
};

template <int warps>
__device__ inline void barrier() {
    if constexpr (warps == 1) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

/// Elements to 16 bytes.
template <class T>
inline constexpr int vector_rows = 16 / int(sizeof(T));

/// The row of a warp's tile that a lane's element r stands for.
template <class T>
__device__ inline int tile_row(int r) {
    constexpr int v = vector_rows<T>;
    return (r / v * 4 + static_cast<int>(threadIdx.x % 32) / 8) * v + r % v;
}

/// A lane's quarter of the rows of one column at `column`, 16 bytes at a time.
template <class T, int quarter>
__device__ inline void load_vectors(const T* column, T (&a)[quarter]) {
    using Vector = typename Float<T>::Vector;
#pragma unroll
    for (int r = 0; r < quarter; r += vector_rows<T>) {
        const Vector v = *reinterpret_cast<const Vector*>(column + tile_row<T>(r));
        a[r] = v.x, a[r + 1] = v.y;
        if constexpr (vector_rows<T> == 4) a[r + 2] = v.z, a[r + 3] = v.w;
    }
}

/// Loads the warp's rows at `A` and n columns; h rows exist; only rows <= column if `triangle`; zeros elsewhere.
template <class T, int quarter>
__device__ inline void load_tile(const T* A, Index ld, int h, int n, bool triangle, T (&a)[4][quarter]) {
    const int g = threadIdx.x % 8;
    const bool whole = h >= 4 * quarter && n == 32 && !triangle && aligned_16(A, ld);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int c = g + 8 * k;
        if (whole) {
            load_vectors(A + c * ld, a[k]);
            continue;
        }
#pragma unroll
        for (int r = 0; r < quarter; ++r) {
            const int row = tile_row<T>(r);
            a[k][r] = row < h && c < n && (!triangle || row <= c) ? A[row + c * ld] : T(0);
        }
    }
}

/// Factors the tile in `a`. R goes to s.R, and comes from there if `stacked`. V goes to `A`, unless it is null: the
/// warp's h rows, below the diagonal of a leaf, or up to the diagonals of `triangle`s, one a warp. s.Tk receives VᵀV
/// and tau. A barrier has to come before s.R is read.
template <bool stacked, class T, int warps, int height>
__device__ inline void reflect_tile(ReflectShared<T, warps, height>& s, int h, int n, bool triangle, T* A, Index ld,
                                    T (&a)[4][height / 4]) {
    constexpr int quarter = height / 4;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane % 8, q = lane / 8;
    T my_scale = 0, r_entry = 0;
    for (int j = 0; j < n; ++j) {
        const int parity = j & 1;
        T* const x = s.x[parity] + warp * height;
        // x = A(j+1:, j) (leaf), B(:, j) (stacked)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (8 * k + g != j) continue;
#pragma unroll
            for (int r = 0; r < quarter; ++r) x[tile_row<T>(r)] = a[k][r];
        }
        if (!stacked && warp == 0) {
#pragma unroll
            for (int r = 0; r < quarter; ++r) {
                if (tile_row<T>(r) != j) continue;
#pragma unroll
                for (int k = 0; k < 4; ++k) s.pivot[parity][g + 8 * k] = a[k][r];
            }
            __syncwarp();
            if (lane <= j) x[lane] = 0;
        }
        __syncwarp();

        T x_quarter[quarter];
        const auto multiply = [&] {
            load_vectors(x, x_quarter);
            T sums[4] = {};
#pragma unroll
            for (int r = 0; r < quarter; ++r) {
#pragma unroll
                for (int k = 0; k < 4; ++k) sums[k] = fma(x_quarter[r], a[k][r], sums[k]);
            }
            // over the quarters, column g + 8q to lane (g, q)
            const bool upper = q >= 2, odd = q % 2 == 1;
            T kept[2];
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                kept[k] = (upper ? sums[k + 2] : sums[k]) + __shfl_xor_sync(~0u, upper ? sums[k] : sums[k + 2], 16);
            }
            s.part[parity][warp][lane] = (odd ? kept[1] : kept[0]) + __shfl_xor_sync(~0u, odd ? kept[0] : kept[1], 8);
            barrier<warps>();
            T sum = s.part[parity][0][lane];
#pragma unroll
            for (int w = 1; w < warps; ++w) sum += s.part[parity][w][lane];
            return sum;
        };
        // xᵀ[V x C]
        T product = multiply();
        // row j − 1 of R, which all warps had read when they came to the barrier
        if (warp == 0 && j > 0) s.R[j - 1][lane] = r_entry;
        const T pivot = stacked ? s.R[j][lane] : s.pivot[parity][lane];
        T xx = __shfl_sync(~0u, product, j);
        const T alpha = __shfl_sync(~0u, pivot, j);
        T beta = alpha, tau = 0, scale = 0;
        const T squares = alpha * alpha + xx;
        if (squares > safe_low<T> && squares < safe_high<T>) {
            if (xx != 0) {
                // scale = 1/(α − β), τ = (β − α)/β by one division
                beta = -copysign(sqrt(squares), alpha);
                const T gap = alpha - beta, inverse = 1 / (beta * gap);
                scale = beta * inverse;
                tau = -gap * gap * inverse;
            }
        } else if (squares != squares) {
            beta = tau = scale = squares;  // NaN propagates
        } else {
            // x := 2^-e x, 2^e the largest entry; the same branch in every thread
            T largest = 0;
#pragma unroll
            for (int r = lane; r < height; r += 32) largest = fmax(largest, fabs(x[r]));
#pragma unroll
            for (int step = 16; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(~0u, largest, step));
            s.largest[warp] = largest;
            barrier<warps>();
            largest = fabs(alpha);
#pragma unroll
            for (int w = 0; w < warps; ++w) largest = fmax(largest, s.largest[w]);
            const int e = largest > 0 && isfinite(largest) ? ilogb(largest) : 0;
#pragma unroll
            for (int r = lane; r < height; r += 32) x[r] = scalbn(x[r], -e);
            __syncwarp();
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                if (8 * k + g == j) load_vectors(x, a[k]);
            }
            product = multiply();
            xx = __shfl_sync(~0u, product, j);
            const T scaled_alpha = scalbn(alpha, -e);
            if (xx != 0) {
                beta = -copysign(sqrt(scaled_alpha * scaled_alpha + xx), scaled_alpha);
                tau = (beta - scaled_alpha) / beta;
                scale = 1 / (scaled_alpha - beta);
                beta = scalbn(beta, e);
            }
        }
        if (lane == j) my_scale = scale;
        // w = tau (c₀ᵀ + vᵀC)
        const T w = lane > j ? tau * (pivot + scale * product) : T(0);
        if (warp == 0) {
            r_entry = lane > j ? pivot - w : lane == j ? beta : T(0);
            // V(:, 0:j)ᵀ v_j, where v_j starts with its 1 in row j of a leaf
            const T gram = my_scale * ((stacked ? T(0) : pivot) + scale * product);
            s.Tk[lane][j] = lane < j ? gram : lane == j ? tau : T(0);
        }
        // v = scale x
#pragma unroll
        for (int r = lane; r < height; r += 32) {
            if (A && r < h && (stacked ? !triangle || r <= j : warp * height + r > j)) A[r + j * ld] = scale * x[r];
        }
        // C −= v w, columns that are done with left out eight at a time
#pragma unroll
        for (int r = 0; r < quarter; ++r) x_quarter[r] *= scale;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (8 * k + 7 <= j) continue;
            const T factor = -__shfl_sync(~0u, w, g + 8 * k);
#pragma unroll
            for (int r = 0; r < quarter; ++r) a[k][r] = fma(x_quarter[r], factor, a[k][r]);
        }
    }
    barrier<warps>();
    if (warp == 0) s.R[n - 1][lane] = r_entry;
}

/// s.Tk from VᵀV above tau to T, upper triangular with exact zeros below.
template <class T, int warps, int height>
__device__ inline void join_t(ReflectShared<T, warps, height>& s) {
    barrier<warps>();
#pragma unroll
    for (int k = 1; k < 32; k *= 2) {
        // work = T₁ G,  T₁₂ = −work T₂
        for (int e = threadIdx.x; e < 16 * k; e += warps * 32) {
            const int base = e / (k * k) * 2 * k, i = base + e % k, j = base + k + e / k % k;
            T sum = 0;
#pragma unroll
            for (int l = 0; l < k; ++l) sum = fma(s.Tk[i][base + l], s.Tk[base + l][j], sum);
            s.work[i][j] = sum;
        }
        barrier<warps>();
        for (int e = threadIdx.x; e < 16 * k; e += warps * 32) {
            const int base = e / (k * k) * 2 * k, i = base + e % k, j = base + k + e / k % k;
            T sum = 0;
#pragma unroll
            for (int l = 0; l < k; ++l) sum = fma(-s.work[i][base + k + l], s.Tk[base + k + l][j], sum);
            s.Tk[i][j] = sum;
        }
        barrier<warps>();
    }
}

/// Shared 32×33 array to n×n in memory: all of it, or its upper triangle.
template <class T, int warps>
__device__ inline void store_square(const T (*S)[33], int n, bool upper, T* A, Index ld) {
    const int lane = threadIdx.x % 32;
    for (int c = threadIdx.x / 32; c < n; c += warps) {
        if (lane < (upper ? c + 1 : n)) A[lane + c * ld] = S[lane][c];
    }
}

}  // namespace quoin::cuda
