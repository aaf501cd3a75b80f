#pragma once

// Householder factorization of one tile that lives in the registers of one block, column by column; the mathematics of
// host/block_reflector.hpp (reflect_column, join_t). `factor_leaf` and `factor_node` are made of it.
//
//     leaf:     A = H [R; 0]          A (height·warps)×32, zero rows and columns pad it
//     stacked:  [R; B] = H [R'; 0]    R 32×32 in shared memory, B the tile
//
//     who owns what     lane c of warp w holds `height` rows of column c, 32 or 64, in as many registers: xᵀA needs no
//                       shuffle, only a sum over warps; x, `height` elements a warp, is broadcast from shared memory
//     one step          one sum over warps (one barrier) gives xᵀ[V C] for all columns at once: column j is the norm,
//                       the columns right of it the update, the columns left of it V(:, 0:j)ᵀ v_j for T
//     T                 T₁₂ = −T₁ (V₁ᵀV₂) T₂ from blocks of 1, 2, 4, 8, 16 columns, all blocks of one size at once
//     columns           V of column j stays x_j in registers with its scale beside it; v_j leaves for memory at step j
//     flops             3·h·n² for V and R, h·n² for T, of them 4·h·n² issued; bounded by issue slots and the latency of
//                       n dependent steps, hidden by the other blocks of the multiprocessor

#include <cuda_runtime.h>

#include <cfloat>

#include "geometry.cuh"

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
    T Tk[32][33];            // column j: V(:, 0:j)ᵀ v_j above tau_j, then T
    T stage[warps][32][33];  // a warp's tile between coalesced rows and one column a lane; then work of `join_t`
};

template <int warps>
__device__ inline void barrier() {
    if constexpr (warps == 1) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

/// xᵀa over a lane's rows.
template <class T, int height>
__device__ inline T dot(const T* x, const T (&a)[height]) {
    using Vector = typename Float<T>::Vector;
    constexpr int lanes = sizeof(Vector) / sizeof(T);
    T sums[4] = {};
#pragma unroll
    for (int r = 0; r < height; r += lanes) {
        const Vector v = *reinterpret_cast<const Vector*>(x + r);
        sums[(r + 0) % 4] = fma(v.x, a[r + 0], sums[(r + 0) % 4]);
        sums[(r + 1) % 4] = fma(v.y, a[r + 1], sums[(r + 1) % 4]);
        if constexpr (lanes == 4) {
            sums[2] = fma(v.z, a[r + 2], sums[2]);
            sums[3] = fma(v.w, a[r + 3], sums[3]);
        }
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// a += x·factor
template <class T, int height>
__device__ inline void axpy(const T* x, T factor, T (&a)[height]) {
    using Vector = typename Float<T>::Vector;
    constexpr int lanes = sizeof(Vector) / sizeof(T);
#pragma unroll
    for (int r = 0; r < height; r += lanes) {
        const Vector v = *reinterpret_cast<const Vector*>(x + r);
        a[r + 0] = fma(v.x, factor, a[r + 0]);
        a[r + 1] = fma(v.y, factor, a[r + 1]);
        if constexpr (lanes == 4) {
            a[r + 2] = fma(v.z, factor, a[r + 2]);
            a[r + 3] = fma(v.w, factor, a[r + 3]);
        }
    }
}

/// The warp's rows at `A`, of which h exist, and n columns; only rows <= column count where `triangle`; zeros around.
template <class T, int warps, int height>
__device__ inline void load_tile(ReflectShared<T, warps, height>& s, const T* A, Index ld, int h, int n, bool triangle,
                                 T (&a)[height]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool whole = h >= height && n == 32 && !triangle;
#pragma unroll
    for (int half = 0; half < height; half += 32) {
        const int row = half + lane;
#pragma unroll
        for (int c = 0; c < 32; ++c) {
            const bool inside = whole || (row < h && c < n && (!triangle || row <= c));
            a[half + c] = inside ? A[row + c * ld] : T(0);  // all loads in flight before the first store
        }
    }
#pragma unroll
    for (int half = 0; half < height; half += 32) {
#pragma unroll
        for (int c = 0; c < 32; ++c) s.stage[warp][c][lane] = a[half + c];
        __syncwarp();
#pragma unroll
        for (int r = 0; r < 32; ++r) a[half + r] = s.stage[warp][lane][r];
        __syncwarp();
    }
}

/// Factors the tile in `a`. R comes from s.R where `stacked` and goes there; V goes to `A`, the warp's rows of which h
/// exist (below the diagonal of a leaf, up to the diagonals of `triangle`s, one a warp), unless it is null; s.Tk receives
/// VᵀV and tau. A barrier has to come before s.R is read.
template <bool stacked, class T, int warps, int height>
__device__ inline void reflect_tile(ReflectShared<T, warps, height>& s, int h, int n, bool triangle, T* A, Index ld,
                                    T (&a)[height]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T my_scale = 0, r_entry = 0;
    for (int j = 0; j < n; ++j) {
        const int parity = j & 1;
        T* x = s.x[parity] + warp * height;
        // x = A(j+1:, j) (leaf), B(:, j) (stacked), broadcast by lane j
        if (lane == j) {
#pragma unroll
            for (int r = 0; r < height; ++r) x[r] = a[r];
        }
        if (!stacked && warp == 0) {
#pragma unroll
            for (int r = 0; r < 32; ++r) {
                if (r == j) s.pivot[parity][lane] = a[r];
            }
            __syncwarp();
            if (lane <= j) x[lane] = 0;
        }
        __syncwarp();

        const auto sum_over_warps = [&] {
            s.part[parity][warp][lane] = dot(x, a);
            barrier<warps>();
            T sum = s.part[parity][0][lane];
#pragma unroll
            for (int w = 1; w < warps; ++w) sum += s.part[parity][w][lane];
            return sum;
        };
        // xᵀ[V x C]
        T product = sum_over_warps();
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
            if (lane == j) {
#pragma unroll
                for (int r = 0; r < height; ++r) a[r] = x[r];
            }
            product = sum_over_warps();
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
            const T g = my_scale * ((stacked ? T(0) : pivot) + scale * product);
            s.Tk[lane][j] = lane < j ? g : lane == j ? tau : T(0);
        }
        // v = scale x
#pragma unroll
        for (int r = lane; r < height; r += 32) {
            const T v = scale * x[r];
            x[r] = v;
            if (A && r < h && (stacked ? !triangle || r <= j : warp * height + r > j)) A[r + j * ld] = v;
        }
        __syncwarp();
        // C −= v w
        axpy(x, -w, a);
    }
    barrier<warps>();
    if (warp == 0) s.R[n - 1][lane] = r_entry;
}

/// s.Tk from VᵀV above tau to T, upper triangular with exact zeros below.
template <class T, int warps, int height>
__device__ inline void join_t(ReflectShared<T, warps, height>& s) {
    T(*work)[33] = s.stage[0];
    barrier<warps>();
#pragma unroll
    for (int k = 1; k < 32; k *= 2) {
        // work = T₁ G,  T₁₂ = −work T₂
        for (int e = threadIdx.x; e < 16 * k; e += warps * 32) {
            const int base = e / (k * k) * 2 * k, i = base + e % k, j = base + k + e / k % k;
            T sum = 0;
#pragma unroll
            for (int l = 0; l < k; ++l) sum = fma(s.Tk[i][base + l], s.Tk[base + l][j], sum);
            work[i][j] = sum;
        }
        barrier<warps>();
        for (int e = threadIdx.x; e < 16 * k; e += warps * 32) {
            const int base = e / (k * k) * 2 * k, i = base + e % k, j = base + k + e / k % k;
            T sum = 0;
#pragma unroll
            for (int l = 0; l < k; ++l) sum = fma(-work[i][base + k + l], s.Tk[base + k + l][j], sum);
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
