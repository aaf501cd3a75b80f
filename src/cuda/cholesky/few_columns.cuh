#pragma once

// X := A Y₁⁻¹ Y₂⁻¹ … and partial Gram matrices of X in one pass, for m×n A with n <= 8.
//
// A thread owns 16 bytes of every column at a time: 2 rows in f64, 4 in f32. They are neighbours, or 32 rows apart
// where the columns of a column-major A are not at multiples of 16 bytes. On its rows a thread has all n² flops a row:
// by substitution, x_j = (a_j − Σ_{i<j} x_i r_ij) / r_jj, and XᵀX of its rows in n(n+1)/2 registers. At the end the
// threads of a warp add their sums by halves, and the block its warps' in order, into one part (gram_parts.cuh, one
// unit 16×8). Sums are f64 whatever T is; X is rounded once, after the last factor, and the Gram matrix is computed
// from the rounded X.
//
// Shared: n² doubles a factor, and the sums of the warps. Registers: 2n + 16n/4 for rows on their way, n(n+1) for the
// sums. Any ld and alignment; 16-byte accesses where A, X and their ld allow, else one element each. mn² flops a factor
// and mn² for the Gram matrix; m·n elements read and, where X is stored, written once. Bound by memory.

#include <algorithm>

#include "cuda/arch/sm70_vector.cuh"
#include "cuda/arch/sm80_copy_async.cuh"
#include "cuda/cholesky/factors.cuh"
#include "cuda/elements/warp_sums.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/products/gram_parts.cuh"
#include "cuda/runtime/ceil_div.cuh"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "primitives.hpp"

namespace quoin::cuda {

/// As many as a multiprocessor's registers are enough for, in one block: few parts are summed fast.
__host__ __device__ constexpr int few_threads(int n) {
    constexpr int of_cols[] = {1024, 896, 768, 512, 384, 320, 384, 256};
    return of_cols[n - 1];
}

template <class T, int n>
__global__ void __launch_bounds__(few_threads(n))
    few_columns_kernel(Index m, const T* A, Index lda, bool by_rows, const __grid_constant__ Factors factors, T* X,
                       Index ldx, double* parts, const Certificate* certificate) {
    constexpr int rows = vector_size<T>, sums = n * (n + 1) / 2, threads = few_threads(n), warps = threads / 32;
    __shared__ double Y[max_factors][n][n];  // [f][j][i]: R_f(i, j), and 1 / R_f(j, j)
    __shared__ double warp_sums[warps][sums];
    if (certificate && certificate->refused()) return;
    for (int e = threadIdx.x; e < factors.count * n * n; e += threads) {
        const int f = e / (n * n), j = e / n % n, i = e % n;
        if (i <= j) {
            const double r = factors.data[f][i + j * factors.ld[f]];
            Y[f][j][i] = i == j ? 1 / r : r;
        }
    }
    __syncthreads();

    const bool aligned_a = !by_rows && aligned_16(A, lda), aligned_x = aligned_a && aligned_16(X, ldx);
    const Index next_row = by_rows ? lda : 1, next_col = by_rows ? 1 : lda;
    // from a thread's first row to its next
    const int apart = aligned_a || by_rows ? 1 : 32;
    const Index step = Index(gridDim.x) * threads * rows;
    const auto load = [&](Index row, Vector<T>(&a)[n]) {
        if (aligned_a && row + rows <= m) {
#pragma unroll
            for (int j = 0; j < n; ++j) a[j] = *reinterpret_cast<const Vector<T>*>(A + row + j * lda);
        } else {
#pragma unroll
            for (int j = 0; j < n; ++j) {
#pragma unroll
                for (int e = 0; e < rows; ++e) {
                    const Index i = row + e * apart;
                    a[j].at[e] = i < m ? A[i * next_row + j * next_col] : T(0);
                }
            }
        }
    };

    double sum[sums] = {};
    Vector<T> next[n];
    const int lane = threadIdx.x % 32;
    Index row = (Index(blockIdx.x) * threads + threadIdx.x - lane) * rows + lane * (apart == 1 ? rows : 1);
    load(row, next);
    for (; row < m; row += step) {
        Vector<T> x[n];
#pragma unroll
        for (int j = 0; j < n; ++j) x[j] = next[j];
        load(row + step, next);
#pragma unroll
        for (int e = 0; e < rows; ++e) {
            double y[n];
#pragma unroll
            for (int j = 0; j < n; ++j) y[j] = x[j].at[e];
            for (int f = 0; f < factors.count; ++f) {
#pragma unroll
                for (int j = 0; j < n; ++j) {
#pragma unroll
                    for (int i = 0; i < j; ++i) y[j] -= y[i] * Y[f][j][i];
                    y[j] *= Y[f][j][j];
                }
            }
#pragma unroll
            for (int j = 0; j < n; ++j) {
                x[j].at[e] = static_cast<T>(y[j]);
                y[j] = x[j].at[e];
            }
            if (parts) {
                int s = 0;
#pragma unroll
                for (int j = 0; j < n; ++j) {
#pragma unroll
                    for (int i = 0; i <= j; ++i, ++s) sum[s] += y[i] * y[j];
                }
            }
        }
        if (!X) continue;
        if (aligned_x && row + rows <= m) {
#pragma unroll
            for (int j = 0; j < n; ++j) *reinterpret_cast<Vector<T>*>(X + row + j * ldx) = x[j];
        } else {
#pragma unroll
            for (int j = 0; j < n; ++j) {
#pragma unroll
                for (int e = 0; e < rows; ++e) {
                    if (row + e * apart < m) X[row + e * apart + j * ldx] = x[j].at[e];
                }
            }
        }
    }
    if (!parts) return;

#pragma unroll
    for (int s = 0; s < sums; ++s) {
        sum[s] = warp_sum(sum[s]);
        if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32][s] = sum[s];
    }
    __syncthreads();
    double* const part = parts + blockIdx.x * part_size(1, fused_height);
    if (threadIdx.x < 128) {
        const PlaceInUnit place(threadIdx.x);
        double total = 0;
        if (place.row <= place.col && place.col < n) {
            const int s = place.col * (place.col + 1) / 2 + place.row;
            for (int w = 0; w < warps; ++w) total += warp_sums[w][s];
        }
        part[threadIdx.x] = total;
    }
}

/// Blocks of a launch, and so parts: fixed by the shape and the device.
template <class T>
int few_columns_grid(Index m, int n, int multiprocessors) {
    const Index rows = Index(few_threads(n)) * vector_size<T>;
    return static_cast<int>(std::min<Index>(Index(multiprocessors), ceil_div(m, rows)));
}

/// m > 0, 0 < n <= 8, at most `max_factors` factors; X, parts and certificate may each be null.
template <class T>
void few_columns(Context<Cuda>& ctx, InputView<T, Cuda> A, const Factors& factors, MatrixView<T, Cuda> X, double* parts,
                 const Certificate* certificate) {
    const Index m = A.rows;
    const int n = static_cast<int>(A.cols);
    with_constant<1, few_cols>(n, [&](auto cols) {
        const auto grid = static_cast<unsigned>(few_columns_grid<T>(m, n, ctx.state().kernels.multiprocessors));
        launch(ctx.stream(), few_columns_kernel<T, cols>, {grid, few_threads(cols), 0}, m, A.data, A.ld, A.by_rows,
               factors, X.data, X.ld, parts, certificate);
    });
}

}  // namespace quoin::cuda
