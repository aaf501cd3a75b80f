#pragma once

// Modified Gram-Schmidt of a few columns, A (m×n, n <= sweep_cols) = Q R, a launch a column: sweep t finishes column j
// = t − 1 and computes the products that column t needs, in one pass over the remaining columns.
//
//     r_jl = q_jᵀa_l,   q_j = a_j / r_jj,   a_l := a_l − r_jl q_j   for l > j;     parts of a_tᵀa_l for l >= t
//
//       j t      n        Block b owns rows [b h, b h + h), a thread every sweep_threads-th row of them with all its columns in
//     ┌─┬─┬──────┐ b h    registers. Every block adds the parts of the sweep before, a warp a product, in one order, and so all
//     │ │ │      │        come to the same r. The parts of the next products go where this sweep's are not (every second time):
//     ├─┼─┼──────┤        blocks read those as long as it lasts.
//     └─┴─┴──────┘        Block 0 writes row j of R and refuses the certificate. Sums in double, of a block's threads through 33 KiB
//                          of shared memory.
//
//   column_squares_kernel  one block a column; the squared norms of A's columns from R.
//
// Sweep t reads n − t + 1 columns and writes as many; a short panel is bound by the latency of n + 1 launches.

#include "cuda/elements/warp_sums.cuh"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

constexpr int sweep_cols = 32, sweep_threads = 128;
/// Threads that add one product.
constexpr int adders = sweep_threads / sweep_cols;
static_assert(adders == 4);

/// Squared norms of n columns from their coefficients R, k of them above the triangle.
struct ColumnSquares {
    double square;  ///< Σ r_ij², over i < k, or over i <= k + j
    double kept;    ///< |r_jj|
};

template <class T>
struct SweepOperands {
    Index m;
    int n;
    T* A;
    Index lda;
    T* R;  ///< row k of the array, with the panel's triangle
    Index ldr, k;
    bool complete;
    const ColumnSquares* above;  ///< over the rows before k
    Index h;
    Certificate* certificate;
};

/// Returns the sum over the threads that add one product. Every lane of a warp calls it.
__device__ __forceinline__ double sum_of_adders(double x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

/// parts: product l of block b at l·gridDim.x + b. Column t − 1 depends on others up to tolerance·‖R(:, t − 1)‖.
template <class T>
__global__ void __launch_bounds__(sweep_threads)
    sweep_kernel(SweepOperands<T> s, int t, double tolerance, const double* parts, double* next_parts) {
    // of every thread; rows that are 4 numbers apart in the banks
    __shared__ double own[sweep_cols][sweep_threads + 4];
    __shared__ double products[sweep_cols], before;
    const int n = s.n, j = t - 1, lane = threadIdx.x % 32;
    const int product = threadIdx.x / adders, adder = threadIdx.x % adders;
    const unsigned blocks = gridDim.x;
    const volatile int& reason = reinterpret_cast<const volatile int&>(s.certificate->reason);
    // another block may be closing it
    if (__syncthreads_or(reason != Certificate::Valid)) return;

    T scale = 1, r[sweep_cols];
    bool depends = false;
    if (t > 0) {
        double sum = 0;
        if (product >= j && product < n) {
#pragma unroll 8
            for (unsigned b = adder; b < blocks; b += adders) sum += parts[product * blocks + b];
        }
        sum = sum_of_adders(sum);
        if (adder == 0) products[product] = sum;
        if (threadIdx.x < 32) {
            const double r_ij = lane < j ? static_cast<double>(s.R[lane + j * s.ldr]) : 0;
            const double square = warp_sum(r_ij * r_ij);
            if (lane == 0) before = square;
        }
        __syncthreads();
        const double norm = sqrt(products[j]), inverse = 1 / norm;
        depends = norm <= tolerance * sqrt(s.above[j].square + before + norm * norm);
        if (depends && !s.complete) {
            if (blockIdx.x == 0 && threadIdx.x == 0) s.certificate->refuse(0, Certificate::Pivot, s.k + j);
            return;
        }
        scale = static_cast<T>(inverse);
#pragma unroll
        for (int l = 0; l < sweep_cols; ++l) {
            r[l] = l < t || l >= n || depends ? T(0) : static_cast<T>(products[l] * inverse);
        }
        if (blockIdx.x == 0 && threadIdx.x < n) {
            const int l = threadIdx.x;
            if (l >= j) s.R[j + l * s.ldr] = depends ? T(0) : static_cast<T>(l == j ? norm : products[l] * inverse);
            if (l > j) s.R[l + j * s.ldr] = T(0);
        }
    }

    double sums[sweep_cols] = {};
    const Index end = min(s.m, (Index(blockIdx.x) + 1) * s.h);
    for (Index i = Index(blockIdx.x) * s.h + threadIdx.x; i < end; i += sweep_threads) {
        T a[sweep_cols], q = 0;
#pragma unroll
        for (int l = 0; l < sweep_cols; ++l) {
            if (l >= t && l < n) a[l] = s.A[i + l * s.lda];
        }
        if (t > 0) {
            q = depends ? static_cast<T>(random_sign(i, s.k + j) / sqrt(static_cast<double>(s.m)))
                        : s.A[i + j * s.lda] * scale;
            s.A[i + j * s.lda] = q;
        }
        T a_t = 0;
#pragma unroll
        for (int l = 0; l < sweep_cols; ++l) {
            if (l >= t && l < n) {
                if (t > 0) {
                    a[l] -= r[l] * q;
                    s.A[i + l * s.lda] = a[l];
                }
                if (l == t) a_t = a[l];
                sums[l] += static_cast<double>(a_t) * static_cast<double>(a[l]);
            }
        }
    }
    if (t == n) return;
#pragma unroll
    for (int l = 0; l < sweep_cols; ++l) own[l][threadIdx.x] = sums[l];
    __syncthreads();
    double sum = 0;
#pragma unroll 8
    for (int thread = adder; thread < sweep_threads; thread += adders) sum += own[product][thread];
    sum = sum_of_adders(sum);
    if (adder == 0 && product >= t && product < n) next_parts[product * blocks + blockIdx.x] = sum;
}

constexpr int squares_threads = 512;

template <class T>
__global__ void __launch_bounds__(squares_threads)
    column_squares_kernel(MatrixView<const T, Cuda> R, Index k, bool with_triangle, ColumnSquares* found) {
    __shared__ double warps[squares_threads / 32];
    for (Index j = blockIdx.x; j < R.cols; j += gridDim.x) {
        const Index end = with_triangle ? k + j + 1 : k;
        double square = 0;
#pragma unroll 8
        for (Index i = threadIdx.x; i < end; i += squares_threads) {
            const double r = static_cast<double>(R.data[i + j * R.ld]);
            square += r * r;
        }
        square = warp_sum(square);
        __syncthreads();
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = square;
        __syncthreads();
        if (threadIdx.x == 0) {
            square = 0;
            for (int w = 0; w < squares_threads / 32; ++w) square += warps[w];
            found[j] = {square, with_triangle ? fabs(static_cast<double>(R.data[k + j + j * R.ld])) : 0};
        }
    }
}

}  // namespace quoin::cuda
