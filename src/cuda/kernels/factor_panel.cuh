#pragma once

// A (m×n, n <= 32, m >= n) = H R (geqrt): V below the diagonal, R on and above it, T n×n with zeros below.
//
// One cluster of up to 16 blocks holds the panel; block r owns the rows [r·h, (r + 1)·h), h >= 32, in its shared memory
// where they fit, and otherwise where they lie:
//
//      block 0  ┌ R \ ┐   rows 0 … 31 and with them R, T and the diagonal are block 0's
//               │ V   │   one cluster barrier a column: every block leaves xᵀ[V x C] of its rows in its own shared memory,
//      block 1  ├─────┤   and after it adds the blocks' parts in their order, so that all compute the same reflector
//               │ V   │
//      block 2  └─────┘
//
// Threads: in products, warp w owns the columns w and w + 16, its lanes the rows; in updates, a thread owns rows.
// Shared: h·n elements of the panel, 2·(2·32) of products (two sets in turn, so that one barrier a column suffices), T 32².
// 4mn² flops, of which mn² are V's products with later columns for T, taken along because a warp would idle otherwise.
// Bound by shared memory bandwidth and, below some 300 rows a block, by the barrier's latency.
//
// x is rescaled where its square sum would over- or underflow; x = 0 gives H = I.

#include <cooperative_groups.h>

#include <limits>

#include "quoin/cuda.hpp"

namespace quoin::cuda {

inline constexpr int panel_width = 32, panel_threads = 512;

template <class T>
struct PanelBlock {
    Index m;
    int n;
    T* A;
    Index lda;
    T* Tf;
    Index ldt;
    Index h;      // rows a block
    bool staged;  // the rows go through shared memory
};

template <class T>
__global__ void __launch_bounds__(panel_threads) factor_panel_block(PanelBlock<T> p) {
    namespace cg = cooperative_groups;
    const cg::cluster_group cluster = cg::this_cluster();
    const int rank = static_cast<int>(cluster.block_rank()), blocks = static_cast<int>(cluster.num_blocks());
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, n = p.n;
    const Index first = rank * p.h, rows = max(Index(0), min(p.h, p.m - first));

    extern __shared__ __align__(16) unsigned char panel_memory[];
    __shared__ T parts[2][panel_width], tops[2][panel_width], maxima[2][panel_threads / 32];
    __shared__ T total[panel_width], top[panel_width], w[panel_width], Tk[panel_width][panel_width + 1];
    T* const P = p.staged ? reinterpret_cast<T*>(panel_memory) : p.A + first;
    const Index ldp = p.staged ? p.h : p.lda;
    int set = 0;

    // load
    if (p.staged) {
        for (int c = 0; c < n; ++c) {
            for (Index i = tid; i < rows; i += panel_threads) P[i + c * ldp] = p.A[first + i + c * p.lda];
        }
    }
    for (int at = tid; at < panel_width * panel_width; at += panel_threads) Tk[at / panel_width][at % panel_width] = 0;
    __syncthreads();

    // total[c] := x_jᵀ A(:, c) over the rows below j, top[c] := A(j, c), the same in every block
    const auto products = [&](int j) {
        const Index begin = rank == 0 ? j + 1 : 0;
        const T* x = P + j * ldp;
        T sum[2] = {0, 0};
        const int c0 = warp, c1 = warp + panel_threads / 32;
        if (c0 < n) {
            const T *a0 = P + c0 * ldp, *a1 = P + (c1 < n ? c1 : c0) * ldp;
            for (Index i = begin + lane; i < rows; i += 32) {
                const T x_i = x[i];
                sum[0] += x_i * a0[i];
                sum[1] += x_i * a1[i];
            }
            for (int step = 16; step > 0; step /= 2) {
                sum[0] += __shfl_xor_sync(~0u, sum[0], step);
                sum[1] += __shfl_xor_sync(~0u, sum[1], step);
            }
            if (lane == 0) {
                parts[set][c0] = sum[0];
                if (c1 < n) parts[set][c1] = sum[1];
            }
        }
        if (rank == 0 && tid < n) tops[set][tid] = P[j + tid * ldp];
        cluster.sync();
        if (tid < n) {
            T value = 0;
            for (int b = 0; b < blocks; ++b) value += *cluster.map_shared_rank(&parts[set][tid], b);
            total[tid] = value;
            top[tid] = *cluster.map_shared_rank(&tops[set][tid], 0);
        }
        set ^= 1;
        __syncthreads();
    };
    // max |x_j| over the rows from j on, the same in every block
    const auto largest_entry = [&](int j) {
        T largest = 0;
        for (Index i = (rank == 0 ? j : 0) + tid; i < rows; i += panel_threads)
            largest = fmax(largest, fabs(P[i + j * ldp]));
        for (int step = 16; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(~0u, largest, step));
        if (lane == 0) maxima[set][warp] = largest;
        cluster.sync();
        for (int b = 0; b < blocks; ++b) {
            const T* found = cluster.map_shared_rank(&maxima[set][0], b);
            for (int k = 0; k < panel_threads / 32; ++k) largest = fmax(largest, found[k]);
        }
        set ^= 1;
        return largest;
    };

    constexpr T u = std::numeric_limits<T>::epsilon() / 2;
    constexpr T low = std::numeric_limits<T>::min() / (u * u), high = std::numeric_limits<T>::max() * (u * u);
    for (int j = 0; j < n; ++j) {
        T* const x = P + j * ldp;
        const Index begin = rank == 0 ? j + 1 : 0;
        products(j);
        T alpha = top[j], squares = alpha * alpha + total[j];
        int e = 0;
        if (!(squares > low && squares < high)) {
            const T largest = largest_entry(j);
            if (largest > 0 && isfinite(largest)) e = ilogb(largest);
            __syncthreads();
            for (Index i = begin + tid; i < rows; i += panel_threads) x[i] = scalbn(x[i], -e);
            __syncthreads();
            products(j);
            alpha = scalbn(alpha, -e);
            squares = alpha * alpha + total[j];
        }
        // beta = −sgn(α)‖[α; x]‖, τ = (β − α)/β, v = x/(α − β)
        T beta = alpha, tau = 0, scale = 0;
        if (total[j] != 0) {
            beta = -copysign(sqrt(squares), alpha);
            tau = (beta - alpha) / beta;
            scale = 1 / (alpha - beta);
        }
        // wᵀ = τ [1; v]ᵀC;  left of j: g = Vᵀ[1; v]
        if (tid < n) w[tid] = tid > j ? tau * (top[tid] + scale * total[tid]) : top[tid] + scale * total[tid];
        __syncthreads();
        // [x C] := [v, C − v wᵀ]
        for (Index i = begin + tid; i < rows; i += panel_threads) {
            const T v = x[i] * scale;
            x[i] = v;
            for (int c = j + 1; c < n; ++c) P[i + c * ldp] -= v * w[c];
        }
        if (rank == 0) {
            if (tid == j) P[j + j * ldp] = scalbn(beta, e);
            if (tid > j && tid < n) P[j + tid * ldp] = top[tid] - w[tid];
            // T(0:j, j) = −τ T(0:j, 0:j) g
            if (warp == panel_threads / 32 - 1 && lane <= j) {
                T sum = 0;
                for (int l = lane; l < j; ++l) sum += Tk[l][lane] * w[l];
                Tk[j][lane] = lane == j ? tau : -tau * sum;
            }
        }
        __syncthreads();
    }

    // store
    if (p.staged) {
        for (int c = 0; c < n; ++c) {
            for (Index i = tid; i < rows; i += panel_threads) p.A[first + i + c * p.lda] = P[i + c * ldp];
        }
    }
    if (rank == 0) {
        for (int at = tid; at < n * n; at += panel_threads) p.Tf[at % n + (at / n) * p.ldt] = Tk[at / n][at % n];
    }
    cluster.sync();
}

}  // namespace quoin::cuda
