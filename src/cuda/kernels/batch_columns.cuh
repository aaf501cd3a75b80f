#pragma once

// Many small matrices, m <= 64 and n <= 32, factored by reflectors a column at a time, everything in registers: a thread a column.
//
// `Group` lanes hold a matrix, lane l its column l. Several matrices a warp.
// Step j: lane j leaves x = A(j:m, j) in shared memory. All lanes find s_l = Σ_{i>j} x_i a_il, of which s_j is the norm's, then β, τ
// and 1/(α − β), each for itself, and update.
//
// Products with Q (and Q itself, which is Q I) have the same shape: columns of C in place of A's, reflectors from memory.
// Bound by latency: a column costs a dot product, a square root and a division one after the other.

#include "cuda/kernels/batch_entries.cuh"

namespace quoin::cuda {

template <class T, int Rows>
__device__ void load_column(const typename BatchEntries<const T>::One& A, Index j, int m, bool exists, T (&a)[Rows]) {
    constexpr int W = 16 / sizeof(T);
    const T* const p = A.data + j * A.col_stride;
    if (exists && A.row_stride == 1 && m == Rows && Rows % W == 0 && reinterpret_cast<std::uintptr_t>(p) % 16 == 0) {
        struct alignas(16) Words {
            T x[W];
        };
#pragma unroll
        for (int i = 0; i + W <= Rows; i += W) {
            const Words words = *reinterpret_cast<const Words*>(p + i);
#pragma unroll
            for (int w = 0; w < W; ++w) a[i + w] = words.x[w];
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < Rows; ++i) a[i] = exists && i < m ? p[i * A.row_stride] : T(0);
}
template <class T, int Rows>
__device__ void store_column(const typename BatchEntries<T>::One& A, Index j, int m, const T (&a)[Rows]) {
    constexpr int W = 16 / sizeof(T);
    T* const p = A.data + j * A.col_stride;
    if (A.row_stride == 1 && m == Rows && Rows % W == 0 && reinterpret_cast<std::uintptr_t>(p) % 16 == 0) {
        struct alignas(16) Words {
            T x[W];
        };
#pragma unroll
        for (int i = 0; i + W <= Rows; i += W) {
            Words words;
#pragma unroll
            for (int w = 0; w < W; ++w) words.x[w] = a[i + w];
            *reinterpret_cast<Words*>(p + i) = words;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
        if (i < m) p[i * A.row_stride] = a[i];
    }
}

/// a := (I − τ v vᵀ) a.
template <class T, int Rows>
__device__ void reflect_own_column(const T* v, T tau, T (&a)[Rows]) {
    T s[4] = {};
#pragma unroll
    for (int i = 0; i < Rows; ++i) s[i % 4] += v[i] * a[i];
    const T w = tau * ((s[0] + s[1]) + (s[2] + s[3]));
#pragma unroll
    for (int i = 0; i < Rows; ++i) a[i] -= w * v[i];
}

/// x := column j below row j, zeros above, from the lane that has it, to shared memory; α behind it.
template <class T, int Rows, int First>
__device__ void publish_column(int j, const T (&a)[Rows], T* x) {
    T alpha = 0;
#pragma unroll
    for (int i = First; i < Rows; ++i) {
        x[i] = i > j ? a[i] : T(0);
        if (i < First + 8 && i == j) alpha = a[i];
    }
    x[Rows] = alpha;
}
template <class T, int Rows, int First>
__device__ T dot_own_column(const T* x, const T (&a)[Rows]) {
    T s[4] = {};
#pragma unroll
    for (int i = First; i < Rows; ++i) s[i % 4] += x[i] * a[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/// Steps First to First + 7, and those behind.
template <class T, int Rows, int Group, int First>
__device__ void factor_from(int m, int n, int lane, T (&a)[Rows], T (*shared)[Rows + 16 / int(sizeof(T))], T* taus) {
    if constexpr (First < Group && First < Rows) {
        const int last = min(First + 8, min(m, n));
        for (int j = First; j < last; ++j) {
            T* const x = shared[j % 2];
            if (lane == j) publish_column<T, Rows, First>(j, a, x);
            __syncwarp();
            T s = dot_own_column<T, Rows, First>(x, a), below = __shfl_sync(~0u, s, j, Group), alpha = x[Rows];
            int e = 0;
            if (__any_sync(~0u, fma(alpha, alpha, below) < least_squares_kept<T>())) {
                // 2^-e x in the place of x, where its squares lose digits
                T largest = 0;
#pragma unroll
                for (int i = First; i < Rows; ++i) largest = i >= j ? max(largest, abs(a[i])) : largest;
                const bool small = fma(alpha, alpha, below) < least_squares_kept<T>();
                e = __shfl_sync(~0u, small && largest > 0 ? ilogb(largest) : 0, j, Group);
                __syncwarp();
                if (lane == j) {
#pragma unroll
                    for (int i = First; i < Rows; ++i) a[i] = i >= j ? scalbn(a[i], -e) : a[i];
                    publish_column<T, Rows, First>(j, a, x);
                }
                __syncwarp();
                s = dot_own_column<T, Rows, First>(x, a);
                below = __shfl_sync(~0u, s, j, Group);
                alpha = x[Rows];
            }
            const Reflector<T> h(alpha, below);
            T own = 0;
#pragma unroll
            for (int i = First; i < First + 8 && i < Rows; ++i) own = i == j ? a[i] : own;
            // w = τ (a_jl + vᵀa_l), a_l −= v w behind column j; v itself in it
            const T w = lane > j ? h.tau * fma(h.scale, s, own) : T(0), factor = lane == j ? h.scale : -w * h.scale;
#pragma unroll
            for (int i = First; i < Rows; ++i) {
                const T base = lane == j && i > j ? T(0) : a[i];
                a[i] = fma(factor, x[i], base);
            }
            const T row = lane == j ? (e == 0 ? h.beta : scalbn(h.beta, e)) : own - w;
#pragma unroll
            for (int i = First; i < First + 8 && i < Rows; ++i) a[i] = i == j ? row : a[i];
            if (lane == j && taus) taus[j] = h.tau;
        }
        factor_from<T, Rows, Group, First + 8>(m, n, lane, a, shared, taus);
    }
}

inline constexpr int column_threads = 128;
template <class T, int Rows>
inline constexpr int shared_rows =
    Rows + 16 / int(sizeof(T));  ///< v and tau of a matrix, 16 bytes apart from the next one's banks

template <class T, int Rows, int Group>
__global__ void __launch_bounds__(column_threads)
    factor_columns(BatchSize size, BatchEntries<const T> A, T* X, T* tau, unsigned long long* first_bad) {
    __shared__ alignas(16) T shared[column_threads / Group][2][shared_rows<T, Rows>];
    const int lane = threadIdx.x % Group;
    const Index b = Index(blockIdx.x) * (column_threads / Group) + threadIdx.x / Group;
    const bool exists = b < size.count && lane < size.n;
    T a[Rows];
    load_column<T, Rows>(A[min(b, size.count - 1)], lane, size.m, exists, a);
    T largest = 0, finite = 0;
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
        largest = max(largest, abs(a[i]));
        finite += a[i] * 0;
    }
    if (first_bad && !(finite == 0)) atomicMin(first_bad, static_cast<unsigned long long>(b));
    const int e = far_exponent(largest);
    if (e != 0) {
#pragma unroll
        for (int i = 0; i < Rows; ++i) a[i] = scalbn(a[i], -e);
    }
    factor_from<T, Rows, Group, 0>(size.m, size.n, lane, a, shared[threadIdx.x / Group],
                                   b < size.count ? tau + b * size.k : nullptr);
    if (!exists) return;
    if (e != 0) {
#pragma unroll
        for (int i = 0; i < Rows; ++i) a[i] = i <= lane ? scalbn(a[i], e) : a[i];
    }
    store_column<T, Rows>({X + b * size.m * size.n, 1, size.m}, lane, size.m, a);
}

/// C := op(Q) C of p columns, Group at a time; of the unit matrix where `from` has no data.
template <class T, int Rows, int Group>
__global__ void __launch_bounds__(column_threads)
    apply_columns(BatchSize size, const T* X, const T* tau, bool transpose, int p, BatchEntries<const T> from,
                  bool identity, BatchEntries<T> to) {
    __shared__ alignas(16) T shared[column_threads / Group][shared_rows<T, Rows>];
    const int lane = threadIdx.x % Group;
    T* const v = shared[threadIdx.x / Group];
    const Index b = Index(blockIdx.x) * (column_threads / Group) + threadIdx.x / Group;
    const Index of = min(b, size.count - 1);
    for (int first = 0; first < p; first += Group) {
        const int col = first + lane;
        T c[Rows];
        if (identity) {
#pragma unroll
            for (int i = 0; i < Rows; ++i) c[i] = i == col;
        } else {
            load_column<T, Rows>(from[of], col, size.m, col < p, c);
        }
        for (int step = 0; step < size.k; ++step) {
            const int j = transpose ? step : size.k - 1 - step;
            __syncwarp();
            for (int i = lane; i < Rows; i += Group) {
                v[i] = i > j && i < size.m ? X[of * size.m * size.n + j * size.m + i] : i == j ? T(1) : T(0);
            }
            __syncwarp();
            reflect_own_column<T, Rows>(v, tau[of * size.k + j], c);
        }
        if (b < size.count && col < p) store_column<T, Rows>(to[b], col, size.m, c);
    }
}

}  // namespace quoin::cuda
