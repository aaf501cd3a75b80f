#pragma once

// Modified Gram-Schmidt of a few columns, A (m×n, n <= sweep_cols) = Q R: sweep t finishes column j = t − 1 and
// computes the products that column t needs, in one pass over the remaining columns.
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
//   sweep_kernel           sweep t. It reads n − t + 1 columns and writes as many.
//   all_sweeps_kernel      all sweeps of a short A, one row a thread: the rows stay in registers, and a block sends its
//                          parts to all others. Bound by the latency of n messages instead of n + 1 launches.
//   column_squares_kernel  one block a column; the squared norms of A's columns from R.

#include "cuda/arch/sm70_messages.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

constexpr int sweep_cols = 32, sweep_threads = 128;
/// Most blocks of all_sweeps_kernel. Every one reads the parts of all.
constexpr int max_joined_blocks = 32;
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

/// A column depends on others up to its tolerance times the norm of its column of R.
struct Tolerances {
    double at[sweep_cols];
};

/// Shared memory of a sweep: sums of every thread, in rows that are 4 numbers apart in the banks, and what follows from
/// them.
struct SweepSums {
    double own[sweep_cols][sweep_threads + 4];
    double products[sweep_cols];
};

/// The coefficients of the column that a sweep finishes.
template <class T>
struct Coefficients {
    bool depends = false;
    T scale = 1, r[sweep_cols];
};

/// Finds row j of R from the products q_jᵀa_l r_jj, and writes it. `before` is Σ_i r_ij² over the rows i < j of the
/// panel. Column j depends on others up to tolerance·‖R(:, j)‖. Returns false if the certificate is refused for that.
template <class T>
__device__ __forceinline__ bool finish_row(const SweepOperands<T>& s, int j, double tolerance, const double* products,
                                           double before, Coefficients<T>& c) {
    const double norm = sqrt(products[j]), inverse = 1 / norm;
    c.depends = norm <= tolerance * sqrt(s.above[j].square + before + norm * norm);
    if (c.depends && !s.complete) {
        if (blockIdx.x == 0 && threadIdx.x == 0) s.certificate->refuse(0, Certificate::Pivot, s.k + j);
        return false;
    }
    c.scale = static_cast<T>(inverse);
#pragma unroll
    for (int l = 0; l < sweep_cols; ++l)
        c.r[l] = l <= j || l >= s.n || c.depends ? T(0) : static_cast<T>(products[l] * inverse);
    if (blockIdx.x == 0 && threadIdx.x < s.n) {
        const int l = threadIdx.x;
        if (l >= j) s.R[j + l * s.ldr] = c.depends ? T(0) : static_cast<T>(l == j ? norm : products[l] * inverse);
        if (l > j) s.R[l + j * s.ldr] = T(0);
    }
    return true;
}

/// Returns q_j of row i.
template <class T>
__device__ __forceinline__ T finish_entry(const SweepOperands<T>& s, const Coefficients<T>& c, Index i, int j, T a) {
    return c.depends ? static_cast<T>(random_sign(i, s.k + j) / sqrt(static_cast<double>(s.m))) : a * c.scale;
}

/// Returns the sum over a block of the products of column t, of which this thread adds one.
__device__ __forceinline__ double sum_of_block(SweepSums& shared, const double (&sums)[sweep_cols]) {
#pragma unroll
    for (int l = 0; l < sweep_cols; ++l) shared.own[l][threadIdx.x] = sums[l];
    __syncthreads();
    double sum = 0;
#pragma unroll 8
    for (int thread = threadIdx.x % adders; thread < sweep_threads; thread += adders)
        sum += shared.own[threadIdx.x / adders][thread];
    return sum_of_adders(sum);
}

__device__ __forceinline__ bool is_refused(const Certificate* certificate) {
    // another block may be closing it
    const volatile int& reason = reinterpret_cast<const volatile int&>(certificate->reason);
    return __syncthreads_or(reason != Certificate::Valid);
}

/// parts: product l of block b at l·gridDim.x + b.
template <class T>
__global__ void __launch_bounds__(sweep_threads)
    sweep_kernel(SweepOperands<T> s, int t, double tolerance, const double* parts, double* next_parts) {
    __shared__ SweepSums shared;
    __shared__ double before;
    const int n = s.n, j = t - 1, lane = threadIdx.x % 32;
    const int product = threadIdx.x / adders, adder = threadIdx.x % adders;
    const unsigned blocks = gridDim.x;
    if (is_refused(s.certificate)) return;

    Coefficients<T> c;
    if (t > 0) {
        double sum = 0;
        if (product >= j && product < n) {
#pragma unroll 8
            for (unsigned b = adder; b < blocks; b += adders) sum += parts[product * blocks + b];
        }
        sum = sum_of_adders(sum);
        if (adder == 0) shared.products[product] = sum;
        if (threadIdx.x < 32) {
            const double r_ij = lane < j ? static_cast<double>(s.R[lane + j * s.ldr]) : 0;
            const double square = warp_sum(r_ij * r_ij);
            if (lane == 0) before = square;
        }
        __syncthreads();
        if (!finish_row(s, j, tolerance, shared.products, before, c)) return;
    }

    double sums[sweep_cols] = {};
    const Index end = min(s.m, (Index(blockIdx.x) + 1) * s.h);
    for (Index i = Index(blockIdx.x) * s.h + threadIdx.x; i < end; i += sweep_threads) {
        T a[sweep_cols], q = 0;
#pragma unroll
        for (int l = 0; l < sweep_cols; ++l) {
            if (l >= t && l < n) a[l] = s.A[i + l * s.lda];
        }
        if (t > 0) s.A[i + j * s.lda] = q = finish_entry(s, c, i, j, s.A[i + j * s.lda]);
        T a_t = 0;
#pragma unroll
        for (int l = 0; l < sweep_cols; ++l) {
            if (l >= t && l < n) {
                if (t > 0) {
                    a[l] -= c.r[l] * q;
                    s.A[i + l * s.lda] = a[l];
                }
                if (l == t) a_t = a[l];
                sums[l] += static_cast<double>(a_t) * static_cast<double>(a[l]);
            }
        }
    }
    if (t == n) return;
    const double sum = sum_of_block(shared, sums);
    if (adder == 0 && product >= t && product < n) next_parts[product * blocks + blockIdx.x] = sum;
}

/// boxes: 2 of sweep_cols·gridDim.x messages, of zeros on entry. A block sends into them by turns: to one of them again
/// after all have sent to the other, and so have read this one.
template <class T>
__global__ void __launch_bounds__(sweep_threads)
    all_sweeps_kernel(SweepOperands<T> s, Tolerances tolerances, Message* boxes) {
    __shared__ SweepSums shared;
    __shared__ double before[sweep_cols];
    const int n = s.n, product = threadIdx.x / adders, adder = threadIdx.x % adders, blocks = static_cast<int>(gridDim.x);
    if (is_refused(s.certificate)) return;
    const Index i = Index(blockIdx.x) * sweep_threads + threadIdx.x;
    T a[sweep_cols];
#pragma unroll
    for (int l = 0; l < sweep_cols; ++l) a[l] = l < n && i < s.m ? s.A[i + l * s.lda] : T(0);
    double above = 0;  // Σ r_il² over the finished rows i of the panel, for column l = threadIdx.x
    for (int t = 0;; ++t) {
        const int j = t - 1;
        if (t > 0) {
            constexpr int of_lane = max_joined_blocks / adders;
            const Message* const box = boxes + (j % 2 * sweep_cols + product) * blocks;
            Message parts[of_lane] = {};
            for (bool complete = product < j || product >= n; !complete;) {
                complete = true;
#pragma unroll
                for (int b = 0; b < of_lane; ++b) {
                    if (adder + b * adders < blocks) parts[b] = look_at_message(box + adder + b * adders);
                }
#pragma unroll
                for (int b = 0; b < of_lane; ++b)
                    complete = complete && (adder + b * adders >= blocks || parts[b].label == static_cast<unsigned>(t));
            }
            double sum = 0;
#pragma unroll
            for (int b = 0; b < of_lane; ++b) sum += from_bits<double>(parts[b].payload);
            sum = sum_of_adders(sum);
            if (adder == 0) shared.products[product] = sum;
            if (threadIdx.x < sweep_cols) before[threadIdx.x] = above;
            __syncthreads();
            Coefficients<T> c;
            if (!finish_row(s, j, tolerances.at[j], shared.products, before[j], c)) return;
            if (const int l = static_cast<int>(threadIdx.x); l > j && l < n && !c.depends) {
                const auto r = static_cast<double>(static_cast<T>(shared.products[l] * (1 / sqrt(shared.products[j]))));
                above += r * r;
            }
            T a_j = 0;
#pragma unroll
            for (int l = 0; l < sweep_cols; ++l) a_j = l == j ? a[l] : a_j;
            const T q = finish_entry(s, c, i, j, a_j);
            if (i < s.m) s.A[i + j * s.lda] = q;
            if (t == n) return;
#pragma unroll
            for (int l = 0; l < sweep_cols; ++l) a[l] = i < s.m ? a[l] - c.r[l] * q : T(0);
        }
        T a_t = 0;
        double sums[sweep_cols];
#pragma unroll
        for (int l = 0; l < sweep_cols; ++l) a_t = l == t ? a[l] : a_t;
#pragma unroll
        for (int l = 0; l < sweep_cols; ++l) sums[l] = static_cast<double>(a_t) * static_cast<double>(a[l]);
        const double sum = sum_of_block(shared, sums);
        if (adder == 0 && product >= t && product < n)
            store_message(boxes + (t % 2 * sweep_cols + product) * blocks + blockIdx.x,
                          {bits_of(sum), 0, static_cast<unsigned>(t + 1)});
    }
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
