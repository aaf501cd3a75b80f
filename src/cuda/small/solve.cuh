#pragma once

// Least squares of many small problems, A = QR: R X = C₁ for QᵀB = [C₁; C₂], or Rᵀ Y = B; and κ₁(R) from R⁻¹ itself.
//
//       R (n×n)          columns of R⁻¹ and of X
//     r r r r r        . . . .        a block a problem, a warp a column: lane l holds its rows l, l + 32, …
//       r r r r        . . . .        step j: x_j = c_j/r_jj goes to all lanes, which subtract x_j r_j;
//         r r r        . . . .        the transposed step sums r_j·y over the lanes
//           r r
//             r
//
// n steps a column, each a broadcast (a sum over a warp) and a division: bound by latency.

#include "cuda/elements/batch_entries.cuh"
#include "cuda/elements/warp_sums.cuh"

namespace quoin::cuda {

/// Problem i. C: m×p, X: n×p.
template <class T>
struct SolveProblem {
    const T* B;
    Index b_row, b_col;
    T* C;
    T* X;
    Index ldx;
    T *norms, *condition;
    int p;
};
/// The matrices of a uniform batch, by the distance from each to the next, or of a list.
template <class T>
struct SolveProblems {
    SolveProblem<T> first;
    Index B = 0, C = 0, X = 0;
    const SolveProblem<T>* list = nullptr;

    __device__ SolveProblem<T> operator[](Index i) const {
        if (list) return list[i];
        SolveProblem<T> one = first;
        one.B += i * B;
        one.C += i * C;
        one.X += i * X;
        one.norms += i * one.p;
        one.condition += i;
        return one;
    }
};

/// x := R⁻¹ x. Rows of x below `last` are zeros.
template <class T, int K>
__device__ void solve_column(int n, int last, const T* R, T (&x)[K]) {
    const int lane = threadIdx.x;
#pragma unroll
    for (int top = K - 1; top >= 0; --top) {
        for (int l = min(31, last - 32 * top); l >= 0; --l) {
            const int j = 32 * top + l;
            const T* const r = R + Index(j) * n;
            const T xj = __shfl_sync(~0u, x[top], l) / r[j];
            if (lane == l) x[top] = xj;
#pragma unroll
            for (int k = 0; k <= top; ++k) {
                if (lane + 32 * k < j) x[k] -= xj * r[lane + 32 * k];
            }
        }
    }
}
/// x := R⁻ᵀ x.
template <class T, int K>
__device__ void solve_transposed(int n, const T* R, T (&x)[K]) {
    const int lane = threadIdx.x;
#pragma unroll
    for (int top = 0; top < K; ++top) {
        for (int l = 0; l < min(32, n - 32 * top); ++l) {
            const int j = 32 * top + l;
            const T* const r = R + Index(j) * n;
            T s = 0;
#pragma unroll
            for (int k = 0; k <= top; ++k) s += lane + 32 * k < j ? r[lane + 32 * k] * x[k] : T(0);
            s = warp_sum(s);
            if (lane == l) x[top] = (x[top] - s) / r[j];
        }
    }
}

inline constexpr int max_solve_warps = 8;

/// shortest: C := [R⁻ᵀB; 0]; otherwise X := R⁻¹C₁ and norms. R of problem i at R + i·n². What is refused is NaN, in all
/// of C too.
template <class T, int K>
__global__ void __launch_bounds__(32 * max_solve_warps)
    solve_problems_kernel(BatchSize size, SolveProblems<T> problems, const T* all_R, bool shortest, T rcond,
                          unsigned long long* first_refused) {
    constexpr T safe = Scalar<T>::safe_entry, safe_norm = 32 * safe;
    __shared__ T lengths[32 * K], largest[4][max_solve_warps];
    const int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y, m = size.m, n = size.n;
    for (Index i = blockIdx.x; i < size.count; i += gridDim.x) {
        const SolveProblem<T> one = problems[i];
        const T* const R = all_R + i * n * n;
        bool refused = false;
        // ‖R‖₁, ‖RD‖₁; ‖R⁻¹‖₁, ‖D⁻¹R⁻¹‖₁
        T norms[4] = {};
        for (int j = warp; j < n; j += warps) {
            T sum = 0, squares = 0;
            for (int row = lane; row <= j; row += 32) {
                const T r = R[row + Index(j) * n];
                sum += abs(r);
                squares += r * r;
            }
            sum = warp_sum(sum);
            const T length = sqrt(warp_sum(squares));
            refused |= !(length <= safe_norm && length >= 1 / safe_norm);
            norms[0] = max(norms[0], sum);
            norms[1] = max(norms[1], sum / length);
            if (lane == 0) lengths[j] = length;
        }
        __syncthreads();
        for (int j = warp; j < n; j += warps) {
            T x[K];
#pragma unroll
            for (int k = 0; k < K; ++k) x[k] = lane + 32 * k == j;
            solve_column<T, K>(n, j, R, x);
            T sum = 0, scaled = 0;
#pragma unroll
            for (int k = 0; k < K; ++k) {
                const int row = lane + 32 * k;
                sum += abs(x[k]);
                scaled += row < n ? abs(x[k]) * lengths[row] : T(0);
            }
            sum = warp_sum(sum);
            refused |= !(sum <= std::numeric_limits<T>::max());
            norms[2] = max(norms[2], sum);
            norms[3] = max(norms[3], warp_sum(scaled));
        }
        for (int c = warp; c < one.p; c += warps) {
            T x[K], entry = 0, squares = 0;
            if (shortest) {
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    const int row = lane + 32 * k;
                    x[k] = row < n ? one.B[row * one.b_row + c * one.b_col] : T(0);
                    entry = max(entry, abs(x[k]));
                    refused |= !(abs(x[k]) <= safe);
                }
                solve_transposed<T, K>(n, R, x);
                T* const y = one.C + Index(c) * m;
                for (int row = n + lane; row < m; row += 32) y[row] = 0;
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    if (lane + 32 * k < n) y[lane + 32 * k] = x[k];
                }
            } else {
                const T* const column = one.C + Index(c) * m;
#pragma unroll
                for (int k = 0; k < K; ++k) x[k] = lane + 32 * k < n ? column[lane + 32 * k] : T(0);
                for (int row = lane; row < m; row += 32) {
                    const T value = column[row];
                    entry = max(entry, abs(value));
                    refused |= !(abs(value) <= safe);
                    squares += row < n ? T(0) : value * value;
                }
                squares = warp_sum(squares);
                solve_column<T, K>(n, n - 1, R, x);
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    if (lane + 32 * k < n) one.X[lane + 32 * k + c * one.ldx] = x[k];
                }
            }
            entry = warp_max(entry);
            refused |= entry > 0 && entry < 1 / safe;
            if (lane == 0) one.norms[c] = sqrt(squares);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (lane == 0) largest[k][warp] = norms[k];
        }
        __syncthreads();
        for (int w = 0; w < warps; ++w) {
#pragma unroll
            for (int k = 0; k < 4; ++k) norms[k] = max(norms[k], largest[k][w]);
        }
        refused |= !(1 / (norms[1] * norms[3]) > rcond);
        refused = __syncthreads_or(refused);
        constexpr T none = std::numeric_limits<T>::quiet_NaN();
        const int thread = lane + 32 * warp, threads = 32 * warps;
        if (thread == 0) {
            *one.condition = refused ? none : norms[0] * norms[2];
            if (refused) atomicMin(first_refused, static_cast<unsigned long long>(i));
        }
        if (!refused) continue;
        for (int c = thread; c < one.p; c += threads) one.norms[c] = none;
        for (Index at = thread; at < Index(m) * one.p; at += threads) {
            if (shortest)
                one.C[at] = none;
            else if (at % m < n)
                one.X[at % m + at / m * one.ldx] = none;
        }
    }
}

}  // namespace quoin::cuda
