#pragma once

// The n×n part of Householder reconstruction (Ballard et al. 2014), n <= 128, by one block of 16×16 threads:
//
//     Q − S = L U,  T = −U S L⁻ᵀ,  V := L,  R := S R above it
//
// Thread (x, y) holds the elements (x + 16a, y + 16b) of Q in registers; step k is one of Gauss and Jordan in place, without
// pivoting, so that (Q − S)⁻¹ is there at the end, and on the way row k of U, column k of L and row k of L⁻¹ were:
//
//           k
//      ┌────┬───────┐    s_k = −sgn q_kk,  p = q_kk − s_k, which is u_kk
//      │    │       │    row k is published: L⁻¹(k, :) before the diagonal, U(k, :) from it on
//    k ├────┼───────┤    l_i = q_ik / p is L(i, k) below row k
//      │    │       │    q_ij −= l_i q_kj  (i ≠ k, j ≠ k),   q_ik = −l_i,   q_kj /= p,   q_kk = 1/p
//      └────┴───────┘
//
// T by f64 tensor-core products of 16×8 tiles, the triangles masked where they are crossed.
//
// Shared: 16P·(16P + 8) numbers, P = ⌈n/16⌉ rounded up to even, for the published rows (136 KB for n = 128 in f64), and two
// columns. 2n³ flops for the elimination, n³/3 for T. Bound by latency up to n = 64 (a barrier and a reciprocal a column), by
// the f64 rate of one multiprocessor beyond.

#include <utility>

#include "cuda/kernels/dmma.cuh"
#include "cuda/kernels/reciprocal.cuh"
#include "primitives.hpp"

namespace quoin::cuda {

constexpr int top_threads = 256;

/// All n×n; L is scratch. V may be Q.
template <class T>
struct TopOperands {
    int n;
    const T* Q;
    Index ldq;
    T* R;
    Index ldr;
    T* V;
    Index ldv;
    T* Tf;
    Index ldt;
    double* U;
    Index ldu;
    T* L;
    Index ldl;
    T* signs;
    double limit;
    Verdict* verdict;
};

__host__ __device__ constexpr int top_ld(int P) { return 16 * P + 8; }

template <class T, int P>
__global__ void __launch_bounds__(top_threads, 1) reconstruct_top_kernel(TopOperands<T> p) {
    extern __shared__ __align__(16) unsigned char published[];
    __shared__ T column[2][16 * P], signs[16 * P], squares[top_threads / 32];
    if (p.verdict->closed()) return;
    constexpr int ld = top_ld(P);
    T* const X = reinterpret_cast<T*>(published);
    const int x = threadIdx.x % 16, y = threadIdx.x / 16, n = p.n;

    T q[P][P];
#pragma unroll
    for (int a = 0; a < P; ++a) {
#pragma unroll
        for (int b = 0; b < P; ++b) {
            const int i = x + 16 * a, j = y + 16 * b;
            q[a][b] = i < n && j < n ? p.Q[i + j * p.ldq] : T(0);
        }
    }
    // row and column k, k in [16K, 16K + 16)
    const auto publish = [&]<int K>(int k) {
        if (x == k % 16) {
#pragma unroll
            for (int b = 0; b < P; ++b) X[k + (y + 16 * b) * ld] = q[K][b];
        }
        if (y == k % 16) {
#pragma unroll
            for (int a = 0; a < P; ++a) column[k % 2][x + 16 * a] = q[a][K];
        }
    };
    const auto eliminate = [&]<int K>() {
#pragma unroll 1
        for (int k = 16 * K; k < min(16 * K + 16, n); ++k) {
            __syncthreads();
            const bool row_k = x == k % 16, column_k = y == k % 16;
            const T q_kk = column[k % 2][k], sign = q_kk >= 0 ? T(-1) : T(1), pivot = q_kk - sign;
            const T reciprocal = reciprocal_of(pivot);
            T l[P], u[P];
#pragma unroll
            for (int a = 0; a < P; ++a) l[a] = column[k % 2][x + 16 * a] * reciprocal;
#pragma unroll
            for (int b = 0; b < P; ++b) u[b] = X[k + (y + 16 * b) * ld];
            if (column_k) {
#pragma unroll
                for (int a = 0; a < P; ++a) {
                    const int i = x + 16 * a;
                    if (i > k && i < n) p.L[i + k * p.ldl] = l[a];
                    q[a][K] = 0;
                }
                u[K] = 1;
            }
            if (row_k) {
                // 0 − (−1/p) u_j
                l[K] = -reciprocal;
#pragma unroll
                for (int b = 0; b < P; ++b) q[K][b] = 0;
            }
#pragma unroll
            for (int a = 0; a < P; ++a) {
#pragma unroll
                for (int b = 0; b < P; ++b) q[a][b] -= l[a] * u[b];
            }
            if (k + 1 < 16 * K + 16) {
                publish.template operator()<K>(k + 1);
            } else if constexpr (K + 1 < P) {
                publish.template operator()<K + 1>(k + 1);
            }
            if (row_k && column_k) signs[k] = sign;
        }
    };
    publish.template operator()<0>(0);
    [&]<int... K>(std::integer_sequence<int, K...>) { (eliminate.template operator()<K>(), ...); }
    (std::make_integer_sequence<int, P>{});

    // ‖(Q − S)⁻¹‖_F²
    T square = 0;
#pragma unroll
    for (int a = 0; a < P; ++a) {
#pragma unroll
        for (int b = 0; b < P; ++b) square += q[a][b] * q[a][b];
    }
    for (int step = 16; step > 0; step /= 2) square += __shfl_xor_sync(~0u, square, step);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (lane == 0) squares[warp] = square;
    __syncthreads();
    if (threadIdx.x < n) {
        // u_kk = q_kk − s_k
        X[threadIdx.x * (ld + 1)] -= signs[threadIdx.x];
        p.signs[threadIdx.x] = signs[threadIdx.x];
    }
    __syncthreads();
    double total = 0;
    for (int w = 0; w < top_threads / 32; ++w) total += static_cast<double>(squares[w]);
    if (!(total <= p.limit * p.limit)) {
        if (threadIdx.x == 0) p.verdict->close(p.verdict->step, Verdict::Growth, -1);
        return;
    }

    // T(i, j) = −Σ_{i <= l <= j} u_il s_l w_jl, W = L⁻¹
    const int col_tiles = ceil_div(n, 8), tiles = ceil_div(n, 16) * col_tiles;
    for (int at = warp; at < tiles; at += top_threads / 32) {
        const int i0 = at / col_tiles * 16, j0 = at % col_tiles * 8, j = j0 + g;
        const auto u = [&](int i, int l) {
            return i <= l && l < n ? static_cast<double>(X[i + l * ld] * signs[l]) : 0.0;
        };
        const auto w = [&](int l) { return l < j ? static_cast<double>(X[j + l * ld]) : l == j ? 1.0 : 0.0; };
        Tile16x8 D = {};
#pragma unroll 2
        for (int l = i0; l < j0 + 8; l += 8) {
            const int l0 = l + t, l1 = l + t + 4;
            multiply_add(D, Tile16x8{{u(i0 + g, l0), u(i0 + g + 8, l0), u(i0 + g, l1), u(i0 + g + 8, l1)}},
                         Tile8x8{{w(l0), w(l1)}});
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int i = i0 + g + e / 2 * 8, c = j0 + 2 * t + e % 2;
            if (i < n && c < n) p.Tf[i + c * p.ldt] = i <= c ? static_cast<T>(-D.v[e]) : T(0);
        }
    }
#pragma unroll
    for (int b = 0; b < P; ++b) {
#pragma unroll
        for (int a = 0; a < P; ++a) {
            const int i = x + 16 * a, j = y + 16 * b;
            if (i >= n || j >= n) continue;
            p.U[i + j * p.ldu] = i <= j ? static_cast<double>(X[i + j * ld]) : 0.0;
            if (i <= j) {
                p.V[i + j * p.ldv] = p.R[i + j * p.ldr] = signs[i] * p.R[i + j * p.ldr];
            } else {
                p.V[i + j * p.ldv] = p.L[i + j * p.ldl];
            }
        }
    }
}

/// 0 < n <= 128. Does not wait.
template <class T>
cudaError_t reconstruct_top(const TopOperands<T>& operands, cudaStream_t stream) {
    const auto launch = [&]<int P>() {
        constexpr int bytes = 16 * P * top_ld(P) * int(sizeof(T));
        const auto kernel = reconstruct_top_kernel<T, P>;
        const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        if (error != cudaSuccess) return error;
        kernel<<<1, top_threads, bytes, stream>>>(operands);
        return cudaGetLastError();
    };
    switch (ceil_div(operands.n, 32)) {
        case 1: return launch.template operator()<2>();
        case 2: return launch.template operator()<4>();
        case 3: return launch.template operator()<6>();
        case 4: return launch.template operator()<8>();
        default: return cudaErrorInvalidValue;
    }
}

}  // namespace quoin::cuda
