#pragma once

// P := S R for upper triangular S and R (n×n, n <= 256), zeros below; without S, P := R. P may be R.
//
// A block owns 4 columns, which it copies into shared memory first. Thread (i, h) owns row i and the terms l ≡ h (mod
// groups) of P(i, c) = Σ_l S(i, l) R(l, c), i <= l <= c, for all four; the sums of an entry are added in order of h.
// Products and sums in double, rounded once.
//
// Shared: at most 33 KB. n³/3 flops; S is read by every block, along columns, from the L2 cache. Bound by its latency.

#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

constexpr int product_cols = 4, product_rows = 256;

template <int rows, int groups, class T, class P>
__global__ void __launch_bounds__(rows* groups)
    multiply_upper_kernel(int n, const T* S, Index lds, const T* R, Index ldr, P* to, Index ldp,
                          const Certificate* certificate) {
    __shared__ double strip[rows][product_cols], sums[groups - 1][product_cols][rows];
    if (certificate && certificate->refused()) return;
    const int i = threadIdx.x, h = threadIdx.y, first = blockIdx.x * product_cols;
    const int last = min(first + product_cols, n) - 1, mine = first + h;
    if (i < n && h < product_cols) strip[i][h] = i <= mine && mine < n ? static_cast<double>(R[i + mine * ldr]) : 0.0;
    __syncthreads();

    double sum[product_cols] = {};
    if (!S) {
        if (h == 0 && i < n) {
            for (int c = 0; c < product_cols; ++c) sum[c] = strip[i][c];
        }
    } else if (i < n) {
#pragma unroll 8
        for (int l = i + h; l <= last; l += groups) {
            const double s = static_cast<double>(S[i + l * lds]);
#pragma unroll
            for (int c = 0; c < product_cols; ++c) sum[c] += s * strip[l][c];
        }
    }
    if (h > 0) {
        for (int c = 0; c < product_cols; ++c) sums[h - 1][c][i] = sum[c];
    }
    __syncthreads();
    if (h > 0 || i >= n) return;
    for (int c = 0; c < product_cols && first + c < n; ++c) {
        for (int g = 0; g < groups - 1; ++g) sum[c] += sums[g][c][i];
        to[i + (first + c) * ldp] = static_cast<P>(sum[c]);
    }
}

/// 0 < n <= 256; S and certificate may be null. Does not wait.
template <class T, class P>
void multiply_upper(Context<Cuda>& ctx, MatrixView<const T, Cuda> S, MatrixView<const T, Cuda> R,
                    MatrixView<P, Cuda> to, const Certificate* certificate) {
    const int n = static_cast<int>(R.cols);
    const auto launch_with = [&]<int rows, int groups>() {
        launch(ctx.stream(), multiply_upper_kernel<rows, groups, T, P>, {ceil_div(n, product_cols), dim3(rows, groups)},
               n, S.data, S.ld, R.data, R.ld, to.data, to.ld, certificate);
    };
    if (n <= 64) {
        launch_with.template operator()<64, 8>();
    } else if (n <= 128) {
        launch_with.template operator()<128, 8>();
    } else if (n <= 192) {
        launch_with.template operator()<192, 4>();
    } else {
        launch_with.template operator()<product_rows, 4>();
    }
}

}  // namespace quoin::cuda
