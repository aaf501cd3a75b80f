#pragma once

// The n×n part of Householder reconstruction (Ballard et al. 2014), n <= 128, by one block of 32×32 threads:
//
//     Q − S = L U,  T = −U S L⁻ᵀ,  R := S R
//
// Thread (x, y) holds the elements (x + 32a, y + 32b) of Q, in double. Step k publishes row and column k, and eliminates below
// row k; the places that become free take L⁻¹, since they see the same row operations as the identity would:
//
//      ┌─────────────┐   s_k = −sgn q_kk, u_kk = q_kk − s_k, l_i = q_ik / u_kk
//      │ ╲    U      │   i > k:  q_ij −= l_i u_kj (j > k),  w_ij −= l_i w_kj (j < k),  w_ik = −l_i
//      │   ╲ ────────│ k
//      │ L⁻¹ │  Q    │   T by f64 tensor-core products of 16×8 tiles, the triangles masked where they are crossed
//      └─────────────┘
//
// ‖(LU)⁻¹‖_∞ <= ‖L⁻¹‖_∞ ‖M(U)⁻¹e‖_∞, M(U) the comparison matrix |u_ii|, −|u_ij|, by one warp while the others form T.
//
// Shared: n×(n + 4) doubles (132 KB) and the published rows and columns. Bound by latency: n times a barrier, a reciprocal
// and four multiply-adds.

#include "dmma.cuh"
#include "primitives.hpp"

namespace quoin::cuda {

inline constexpr int top_max_cols = 128, top_threads = 1024;

struct TopShared {
    static constexpr int ld = top_max_cols + 4;
    double row[2][top_max_cols], col[2][top_max_cols], signs[top_max_cols];
    double X[top_max_cols * ld];  // U and, strictly below, L⁻¹
    float lower[top_max_cols], upper;
};

template <class T>
struct TopOperands {
    int n;
    const T* Q;  // n×n
    Index ldq;
    T* R;  // n×n upper triangular, takes the signs
    Index ldr;
    T* V;  // takes L strictly below the diagonal, S R on and above it
    Index ldv;
    T* Tf;
    Index ldt;
    double* U;  // n×n, zeros below
    Index ldu;
    T* signs;
    double limit;
    Verdict* verdict;
};

template <class T>
__global__ void __launch_bounds__(top_threads, 1) reconstruct_top_kernel(TopOperands<T> p) {
    extern __shared__ __align__(16) unsigned char top_memory[];
    auto& shared = *reinterpret_cast<TopShared*>(top_memory);
    constexpr int parts = top_max_cols / 32, ld = TopShared::ld;
    const int x = threadIdx.x % 32, y = threadIdx.x / 32, n = p.n;

    // load
    double q[parts][parts];
#pragma unroll
    for (int a = 0; a < parts; ++a) {
#pragma unroll
        for (int b = 0; b < parts; ++b) {
            const int i = x + 32 * a, j = y + 32 * b;
            q[a][b] = i < n && j < n ? static_cast<double>(p.Q[i + j * p.ldq]) : 0.0;
        }
    }
    const auto publish = [&](int k) {
        if (y == k % 32) {
#pragma unroll
            for (int a = 0; a < parts; ++a) {
                double found = q[a][0];
#pragma unroll
                for (int b = 1; b < parts; ++b) found = b == k / 32 ? q[a][b] : found;
                shared.col[k % 2][x + 32 * a] = found;
            }
        }
        if (x == k % 32) {
#pragma unroll
            for (int b = 0; b < parts; ++b) {
                double found = q[0][b];
#pragma unroll
                for (int a = 1; a < parts; ++a) found = a == k / 32 ? q[a][b] : found;
                shared.row[k % 2][y + 32 * b] = found;
            }
        }
    };

    publish(0);
    for (int k = 0; k < n; ++k) {
        __syncthreads();
        const double q_kk = shared.row[k % 2][k], sign = q_kk >= 0 ? -1.0 : 1.0, pivot = q_kk - sign;
        const double reciprocal = 1 / pivot;
        double l[parts], u[parts];
#pragma unroll
        for (int a = 0; a < parts; ++a) {
            l[a] = x + 32 * a > k ? shared.col[k % 2][x + 32 * a] * reciprocal : 0.0;
            u[a] = y + 32 * a == k ? 1.0 : shared.row[k % 2][y + 32 * a];
        }
#pragma unroll
        for (int a = 0; a < parts; ++a) {
#pragma unroll
            for (int b = 0; b < parts; ++b) {
                const bool column_k = y + 32 * b == k;
                if (column_k && x + 32 * a > k) q[a][b] = 0;
                if (column_k && x + 32 * a == k) q[a][b] = pivot;
                q[a][b] -= l[a] * u[b];
            }
        }
        if (k + 1 < n) publish(k + 1);
        if (threadIdx.x == 0) shared.signs[k] = sign;
        if (y == k % 32) {
#pragma unroll
            for (int a = 0; a < parts; ++a) {
                const int i = x + 32 * a;
                if (i > k && i < n) p.V[i + k * p.ldv] = static_cast<T>(l[a]);
            }
        }
    }
#pragma unroll
    for (int a = 0; a < parts; ++a) {
#pragma unroll
        for (int b = 0; b < parts; ++b) {
            const int i = x + 32 * a, j = y + 32 * b;
            shared.X[i + j * ld] = q[a][b];
            if (i < n && j < n) p.U[i + j * p.ldu] = i <= j ? q[a][b] : 0.0;
        }
    }
    __syncthreads();

    if (threadIdx.x < n) p.signs[threadIdx.x] = static_cast<T>(shared.signs[threadIdx.x]);

    if (y < parts) {
        // row sums of |L⁻¹|
        const int i = threadIdx.x;
        float sum = 1;
        for (int j = 0; j < i; ++j) sum += fabsf(static_cast<float>(shared.X[i + j * ld]));
        shared.lower[i] = i < n ? sum : 0;
    } else if (y == parts) {
        // x_j = (1 + Σ_{l > j} |u_jl| x_l) / |u_jj|
        float sum[parts], top = 0;
#pragma unroll
        for (int a = 0; a < parts; ++a) sum[a] = 1;
        for (int j = n - 1; j >= 0; --j) {
            float found = sum[0];
#pragma unroll
            for (int a = 1; a < parts; ++a) found = a == j / 32 ? sum[a] : found;
            const float x_j = __shfl_sync(~0u, found, j % 32) / fabsf(static_cast<float>(shared.X[j + j * ld]));
            if (!(x_j <= top) && top == top) top = x_j;  // a NaN stays
#pragma unroll
            for (int a = 0; a < parts; ++a) {
                const int i = x + 32 * a;
                if (i < j) sum[a] += fabsf(static_cast<float>(shared.X[i + j * ld])) * x_j;
            }
        }
        if (x == 0) shared.upper = top;
    } else {
        // T(i, j) = −Σ_{i <= l <= j} u_il s_l w_jl
        const int g = x / 4, t = x % 4, warps = top_threads / 32 - parts - 1;
        const int row_tiles = (n + 15) / 16, col_tiles = (n + 7) / 8;
        for (int at = y - parts - 1; at < row_tiles * col_tiles; at += warps) {
            const int i0 = at % row_tiles * 16, j0 = at / row_tiles * 8;
            Tile16x8 D = {};
            for (int l0 = i0; l0 < j0 + 8; l0 += 8) {
                const auto u = [&](int i, int l) {
                    return i <= l && l < n ? shared.X[i + l * ld] * shared.signs[l] : 0.0;
                };
                const auto w = [&](int j, int l) { return l < j ? shared.X[j + l * ld] : l == j ? 1.0 : 0.0; };
                const int k0 = l0 + t, k1 = l0 + t + 4, j = j0 + g;
                multiply_add(D, Tile16x8{{u(i0 + g, k0), u(i0 + g + 8, k0), u(i0 + g, k1), u(i0 + g + 8, k1)}},
                             Tile8x8{{w(j, k0), w(j, k1)}});
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int i = i0 + g + e / 2 * 8, j = j0 + 2 * t + e % 2;
                if (i < n && j < n) p.Tf[i + j * p.ldt] = i <= j ? static_cast<T>(-D.v[e]) : T(0);
            }
        }
    }
    __syncthreads();
    float top = 0;
    for (int i = x; i < n; i += 32) top = fmaxf(top, shared.lower[i]);
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    Verdict verdict;
    if (!(top * shared.upper <= p.limit)) verdict.close(0, Verdict::Growth, -1);
    if (threadIdx.x == 0) *p.verdict = verdict;
    if (verdict.closed()) return;
        // R := S R, above L
#pragma unroll
    for (int b = 0; b < parts; ++b) {
#pragma unroll
        for (int a = 0; a < parts; ++a) {
            const int i = x + 32 * a, j = y + 32 * b;
            if (i > j || j >= n) continue;
            const T r = static_cast<T>(shared.signs[i]) * p.R[i + j * p.ldr];
            p.R[i + j * p.ldr] = p.V[i + j * p.ldv] = r;
        }
    }
}

}  // namespace quoin::cuda
