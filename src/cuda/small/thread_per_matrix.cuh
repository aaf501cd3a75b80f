#pragma once

// Many matrices of at most 4×4, a thread a matrix: V and R with tau, or R with Q, all from registers.

#include "cuda/elements/batch_entries.cuh"
#include "cuda/kernel_choice.hpp"

namespace quoin::cuda {

inline constexpr int matrix_threads = 128;

/// A matrix a thread, zeros beyond its m rows and n columns.
template <class T>
struct ThreadMatrix {
    T a[thread_side][thread_side];  ///< a[column][row]
};

template <class T>
__device__ ThreadMatrix<T> load_matrix(const typename BatchEntries<const T>::One& A, int m, Index first, Index cols) {
    ThreadMatrix<T> C;
#pragma unroll
    for (int j = 0; j < thread_side; ++j) {
#pragma unroll
        for (int i = 0; i < thread_side; ++i) C.a[j][i] = i < m && first + j < cols ? A(i, first + j) : T(0);
    }
    return C;
}

/// Stores the warp's matrices, `rows`×`cols` each, one after the other, from lane 0's on. They go through `staging`, so
/// that neighbouring threads write neighbouring entries. Lanes that are not in `writes` store nothing.
template <class T>
__device__ void store_matrices(const BatchEntries<T>& to, Index b, bool writes, int rows, int cols,
                               const ThreadMatrix<T>& C, T* staging) {
    const bool side_by_side =
        !to.list && to.row_stride == 1 && (cols < 2 || to.col_stride == rows) && to.stride == Index(rows) * cols;
    const unsigned all = __ballot_sync(~0u, writes);
    if (!side_by_side || (all & (all + 1)) != 0) {
        if (!writes) return;
        const auto B = to[b];
#pragma unroll
        for (int j = 0; j < thread_side; ++j) {
#pragma unroll
            for (int i = 0; i < thread_side; ++i) {
                if (i < rows && j < cols) B(i, j) = C.a[j][i];
            }
        }
        return;
    }
    const int lane = threadIdx.x % 32, each = rows * cols;
    const auto place = [](int x) { return x + x / 32; };  // few meet in a bank
    __syncwarp();
#pragma unroll
    for (int j = 0; j < thread_side; ++j) {
#pragma unroll
        for (int i = 0; i < thread_side; ++i) {
            if (i < rows && j < cols) staging[place(lane * each + j * rows + i)] = C.a[j][i];
        }
    }
    __syncwarp();
    T* const target = to.data + (b - lane) * to.stride;
    for (int x = lane; x < __popc(all) * each; x += 32) target[x] = staging[place(x)];
}

/// C := (I − τ v vᵀ) C, v = [0; 1; column j of V below its diagonal].
template <int j, class T>
__device__ __forceinline__ void reflect_matrix(const ThreadMatrix<T>& V, T tau, ThreadMatrix<T>& C) {
#pragma unroll
    for (int l = 0; l < thread_side; ++l) {
        T z = C.a[l][j];
#pragma unroll
        for (int i = j + 1; i < thread_side; ++i) z = fma(V.a[j][i], C.a[l][i], z);
        const T w = tau * z;
        C.a[l][j] -= w;
#pragma unroll
        for (int i = j + 1; i < thread_side; ++i) C.a[l][i] = fma(-w, V.a[j][i], C.a[l][i]);
    }
}
/// C := op(Q) C.
template <class T>
__device__ void apply_reflectors(const ThreadMatrix<T>& V, const T (&tau)[thread_side], int k, bool transpose,
                                 ThreadMatrix<T>& C) {
    unrolled<thread_side>([&](auto x) {
        constexpr int up = x, down = thread_side - 1 - x;
        if (transpose && up < k) reflect_matrix<up>(V, tau[up], C);
        if (!transpose && down < k) reflect_matrix<down>(V, tau[down], C);
    });
}

/// A := V below the diagonal, R above.
template <class T>
__device__ void factor_matrix(ThreadMatrix<T>& A, int k, T (&tau)[thread_side]) {
    unrolled<thread_side>([&](auto step) {
        constexpr int j = step;
        tau[j] = 0;
        if (j >= k) return;
        T(&x)[thread_side] = A.a[j];
        int e = 0;
        const auto below = [&] {
            T sum = 0;
#pragma unroll
            for (int i = j + 1; i < thread_side; ++i) sum = fma(x[i], x[i], sum);
            return sum;
        };
        T squares = below();
        if (fma(x[j], x[j], squares) < least_squares_kept<T>()) {
            // 2^-e x in the place of x, where its squares lose digits
            T largest = 0;
#pragma unroll
            for (int i = j; i < thread_side; ++i) largest = max(largest, abs(x[i]));
            e = largest > 0 ? ilogb(largest) : 0;
#pragma unroll
            for (int i = j; i < thread_side; ++i) x[i] = scalbn(x[i], -e);
            squares = below();
        }
        const Reflector<T> h(x[j], squares);
        tau[j] = h.tau;
        // w = τ (a_jl + vᵀa_l), a_l −= v w for l > j; column j becomes v
#pragma unroll
        for (int l = j + 1; l < thread_side; ++l) {
            T s = 0;
#pragma unroll
            for (int i = j + 1; i < thread_side; ++i) s = fma(x[i], A.a[l][i], s);
            const T w = h.tau * fma(h.scale, s, A.a[l][j]), f = -w * h.scale;
            A.a[l][j] -= w;
#pragma unroll
            for (int i = j + 1; i < thread_side; ++i) A.a[l][i] = fma(f, x[i], A.a[l][i]);
        }
#pragma unroll
        for (int i = j + 1; i < thread_side; ++i) x[i] *= h.scale;
        x[j] = e == 0 ? h.beta : scalbn(h.beta, e);
    });
}

/// Factors the batch. With a `check`, writes nothing of a matrix with NaN or Inf. The first output may be A.
template <class T>
__global__ void __launch_bounds__(matrix_threads)
    factor_in_threads_kernel(BatchSize size, BatchEntries<const T> A, BatchOutputs<T> out, FiniteCheck check) {
    __shared__ T staging[matrix_threads / 32][33 * thread_side * thread_side];
    T* const staged = staging[threadIdx.x / 32];
    const Index b = Index(blockIdx.x) * matrix_threads + threadIdx.x;
    const bool exists = b < size.count;
    ThreadMatrix<T> F = load_matrix<T>(A[min(b, size.count - 1)], size.m, 0, size.n);
    int exponents[thread_side];
    T finite = 0;
#pragma unroll
    for (int j = 0; j < thread_side; ++j) {
        T largest = 0;
#pragma unroll
        for (int i = 0; i < thread_side; ++i) {
            largest = max(largest, abs(F.a[j][i]));
            finite += F.a[j][i] * 0;
        }
        const int e = exponents[j] = far_exponent(largest);
        if (e == 0) continue;
#pragma unroll
        for (int i = 0; i < thread_side; ++i) F.a[j][i] = scalbn(F.a[j][i], -e);
    }
    const bool bad = check && !(finite == 0), writes = exists && !bad;
    if (check) {
        if (bad && exists) check.note(b);
        __syncthreads();
        if (threadIdx.x == 0) check.part_is_read(gridDim.x);
    }
    T tau[thread_side];
    factor_matrix(F, size.k, tau);

    const bool upper = out.kept == Factor::R;
    ThreadMatrix<T> R = F;
#pragma unroll
    for (int j = 0; j < thread_side; ++j) {
#pragma unroll
        for (int i = 0; i < thread_side; ++i) {
            if (i <= j) R.a[j][i] = exponents[j] == 0 ? F.a[j][i] : scalbn(F.a[j][i], exponents[j]);
            if (i > j && upper) R.a[j][i] = 0;
        }
    }
    store_matrices(out.first, b, writes, upper ? size.k : size.m, size.n, R, staged);
    ThreadMatrix<T> second;
#pragma unroll
    for (int j = 0; j < thread_side; ++j) {
#pragma unroll
        for (int i = 0; i < thread_side; ++i) second.a[j][i] = upper ? T(i == j) : j == 0 ? tau[i] : T(0);
    }
    if (!upper) {
        store_matrices(out.second, b, writes, size.k, 1, second, staged);
    } else if (out.form_q) {
        apply_reflectors(F, tau, size.k, false, second);
        store_matrices(out.second, b, writes, size.m, size.k, second, staged);
    }
}

/// to := op(Q) from, p columns. If `upper`, from is [E; 0], E of k rows, or I without matrices. X and tau as BatchSize
/// says.
template <class T>
__global__ void __launch_bounds__(matrix_threads)
    apply_in_threads_kernel(BatchSize size, const T* X, const T* taus, bool transpose, int p,
                            BatchEntries<const T> from, bool upper, BatchEntries<T> to) {
    __shared__ T staging[matrix_threads / 32][33 * thread_side * thread_side];
    const Index b = Index(blockIdx.x) * matrix_threads + threadIdx.x, of = min(b, size.count - 1);
    const ThreadMatrix<T> V = load_matrix<T>({X + of * size.ld * size.n, 1, size.ld}, size.m, 0, size.k);
    T tau[thread_side];
#pragma unroll
    for (int j = 0; j < thread_side; ++j) tau[j] = j < size.k ? taus[of * size.k + j] : T(0);
    for (int first = 0; first < p; first += thread_side) {
        ThreadMatrix<T> C;
        if (upper && from.empty()) {
#pragma unroll
            for (int j = 0; j < thread_side; ++j) {
#pragma unroll
                for (int i = 0; i < thread_side; ++i) C.a[j][i] = i == first + j;
            }
        } else {
            C = load_matrix<T>(from[of], upper ? size.k : size.m, first, p);
        }
        apply_reflectors(V, tau, size.k, transpose, C);
        if (p <= thread_side) {
            store_matrices(to, b, b < size.count, size.m, p, C, staging[threadIdx.x / 32]);
        } else if (b < size.count) {
            const auto target = to[b];
#pragma unroll
            for (int j = 0; j < thread_side; ++j) {
#pragma unroll
                for (int i = 0; i < thread_side; ++i) {
                    if (i < size.m && first + j < p) target(i, first + j) = C.a[j][i];
                }
            }
        }
    }
}

}  // namespace quoin::cuda
