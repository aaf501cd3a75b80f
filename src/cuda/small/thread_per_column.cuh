#pragma once

// Many small matrices, m <= 64 and n <= 32, factored by reflectors a column at a time, everything in registers: a
// thread a column.
//
// `Group` lanes hold a matrix, lane l its column l. Several matrices a warp.
// Step j: lane j leaves x = A(j:m, j) in shared memory. All lanes find s_l = Σ_{i>j} x_i a_il, s_j being the norm's,
// then β, τ and 1/(α − β), each for itself, and update. Row j of R goes to shared memory and the rows below move up by
// one register, so that every step has the same instructions.
//
// Products with Q (and Q itself, which is Q I) have the same shape: columns of C in place of A's, reflectors from
// memory. Bound by latency: a column costs a dot product, a square root and a division one after the other.

#include "cuda/arch/sm70_registers.cuh"
#include "cuda/arch/sm70_vector.cuh"
#include "cuda/elements/batch_entries.cuh"

namespace quoin::cuda {

/// work(i, x_i) for 0 <= i < count, 16 bytes at a time; from the last to the first if `Down`.
template <int count, bool Down = false, class T, class Work>
__device__ __forceinline__ void for_words(const T* x, Work work) {
    constexpr int W = vector_size<T>;
#pragma unroll
    for (int word = 0; word < count / W; ++word) {
        const int first = W * (Down ? count / W - 1 - word : word);
        const auto words = *reinterpret_cast<const Vector<T>*>(x + first);
#pragma unroll
        for (int i = 0; i < W; ++i) {
            const int at = Down ? W - 1 - i : i;
            work(first + at, words.at[at]);
        }
    }
}
/// The first `count` entries to memory that is aligned to 16 bytes.
template <int count, class T, int Rows>
__device__ __forceinline__ void store_words(const T (&a)[Rows], T* to) {
    constexpr int W = vector_size<T>;
#pragma unroll
    for (int i = 0; i < count; i += W) {
        Vector<T> words;
#pragma unroll
        for (int w = 0; w < W; ++w) words.at[w] = a[i + w];
        *reinterpret_cast<Vector<T>*>(to + i) = words;
    }
}
/// Whether words hold column j of A, and nothing else.
template <int Rows, class T>
__device__ bool in_words(const typename BatchEntries<T>::One& A, const T* column, int m) {
    return A.row_stride == 1 && m == Rows && reinterpret_cast<std::uintptr_t>(column) % 16 == 0;
}

/// a := column j of A, zeros if it is not there.
template <class T, int Rows>
__device__ void load_column(const typename BatchEntries<const T>::One& A, Index j, int m, bool exists, T (&a)[Rows]) {
    const T* const p = A.data + j * A.col_stride;
    if (exists && in_words<Rows, const T>(A, p, m)) return for_words<Rows>(p, [&](int i, T x) { a[i] = x; });
#pragma unroll
    for (int i = 0; i < Rows; ++i) a[i] = exists && i < m ? p[i * A.row_stride] : T(0);
}
template <class T, int Rows>
__device__ void store_column(const typename BatchEntries<T>::One& A, Index j, int m, const T (&a)[Rows]) {
    T* const p = A.data + j * A.col_stride;
    if (in_words<Rows, T>(A, p, m)) return store_words<Rows>(a, p);
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

/// Shared memory of the lanes of a matrix: column j from row j on, as step j finds it, and row j of R.
template <class T, int Rows, int Group>
struct HeldColumns {
    /// 16 bytes apart from the next column's banks.
    alignas(16) T x[Group][Rows + vector_size<T>];
    T r[Group][Group + 1];
};
/// Has `Left` numbers of T read from shared memory again, if registers are too few for them.
template <int Left, class T>
__device__ __forceinline__ void forget() {
    if constexpr (Left * sizeof(T) > 256) forget_memory();
}

/// Step j. a_i is the lane's entry of row j + i, 0 <= i < Left, and of row j + 1 + i after it; tau and scale are of the
/// lane's own column.
template <int Left, int Group, class T, int Rows>
__device__ __forceinline__ void factor_column(int j, int lane, T (&a)[Rows], HeldColumns<T, Rows, Group>& held, T& tau,
                                              T& scale) {
    T* const x = held.x[j];
    const auto find_dots = [&] {
        if (lane == j) store_words<Left>(a, x);
        __syncwarp();
        T s[4] = {};
        for_words<Left>(x, [&](int i, T x_i) { s[i % 4] += i > 0 ? x_i * a[i] : T(0); });
        return (s[0] + s[1]) + (s[2] + s[3]);
    };
    T s = find_dots(), below = __shfl_sync(~0u, s, j, Group), alpha = x[0];
    const auto loses_digits = [&] { return fma(alpha, alpha, below) < least_squares_kept<T>(); };
    int e = 0;
    if (Group == 32 ? loses_digits() : __any_sync(~0u, loses_digits())) {
        // 2^-e x in the place of x
        T largest = 0;
#pragma unroll
        for (int i = 0; i < Left; ++i) largest = max(largest, abs(a[i]));
        e = __shfl_sync(~0u, loses_digits() && largest > 0 ? ilogb(largest) : 0, j, Group);
        if (lane == j) {
#pragma unroll
            for (int i = 0; i < Left; ++i) a[i] = scalbn(a[i], -e);
        }
        __syncwarp();
        s = find_dots();
        below = __shfl_sync(~0u, s, j, Group);
        alpha = x[0];
    }
    const Reflector<T> h(alpha, below);
    // w = τ (a_j + vᵀa), a −= v w, on the right of column j
    const T own = a[0], w = lane > j ? h.tau * fma(h.scale, s, own) : T(0), factor = -w * h.scale;
    forget<Left, T>();
    for_words<Left>(x, [&](int i, T x_i) {
        if (i > 0) a[i - 1] = fma(factor, x_i, a[i]);
    });
    a[Left - 1] = 0;
    held.r[j][lane] = lane == j ? (e == 0 ? h.beta : scalbn(h.beta, e)) : own - w;
    if (lane == j) tau = h.tau, scale = h.scale;
}
/// Step j of Q := H_0 ⋯ H_{k−1} I, from the last: c_i is the lane's entry of row j + 1 + i of H_{j+1} ⋯ I, and of row j
/// + i after it.
template <int Left, int Group, class T, int Rows>
__device__ __forceinline__ void form_column(int j, int lane, const HeldColumns<T, Rows, Group>& held, T tau, T scale,
                                            T (&c)[Rows]) {
    const T* const x = held.x[j];
    T s[4] = {};
    for_words<Left>(x, [&](int i, T x_i) { s[i % 4] += i > 0 ? x_i * c[i - 1] : T(0); });
    // w = τ (c_j + vᵀc), c −= v w
    const T own = lane == j, scale_j = __shfl_sync(~0u, scale, j, Group),
            w = __shfl_sync(~0u, tau, j, Group) * fma(scale_j, (s[0] + s[1]) + (s[2] + s[3]), own),
            factor = -w * scale_j;
    forget<Left, T>();
    for_words<Left, true>(x, [&](int i, T x_i) {
        if (i > 0) c[i] = fma(factor, x_i, c[i - 1]);
    });
    c[0] = own - w;
}

/// Steps that have as many rows as the first of them.
inline constexpr int steps_alike = 8;

template <int Left, int Group, class T, int Rows>
__device__ __forceinline__ void factor_columns_from(int k, int lane, T (&a)[Rows], HeldColumns<T, Rows, Group>& held,
                                                    T& tau, T& scale) {
    constexpr int first = Rows - Left;
#pragma unroll 1
    for (int j = first; j < min(first + steps_alike, k); ++j) factor_column<Left, Group>(j, lane, a, held, tau, scale);
    if constexpr (Left > steps_alike && first + steps_alike < Group)
        factor_columns_from<Left - steps_alike, Group>(k, lane, a, held, tau, scale);
}
template <int Left, int Group, class T, int Rows>
__device__ __forceinline__ void form_columns_from(int k, int lane, const HeldColumns<T, Rows, Group>& held, T tau,
                                                  T scale, T (&c)[Rows]) {
    constexpr int first = Rows - Left;
    if constexpr (Left > steps_alike && first + steps_alike < Group)
        form_columns_from<Left - steps_alike, Group>(k, lane, held, tau, scale, c);
#pragma unroll 1
    for (int j = min(first + steps_alike, k) - 1; j >= first; --j)
        form_column<Left, Group>(j, lane, held, tau, scale, c);
}

/// Threads of a block. Its lanes wait only for each other.
inline constexpr int column_threads = 32;

/// Factors the batch. With a `check`, writes nothing of a matrix with NaN or Inf. The first output may be A.
template <class T, int Rows, int Group, bool FormQ>
__global__ void __launch_bounds__(column_threads)
    factor_columns_kernel(BatchSize size, BatchEntries<const T> A, BatchOutputs<T> out, FiniteCheck check) {
    __shared__ HeldColumns<T, Rows, Group> shared[column_threads / Group];
    auto& held = shared[threadIdx.x / Group];
    const int lane = threadIdx.x % Group;
    const Index b = Index(blockIdx.x) * (column_threads / Group) + threadIdx.x / Group;
    bool writes = b < size.count && lane < size.n;
    T a[Rows];
    // the last matrix again where there is none
    load_column<T, Rows>(A[min(b, size.count - 1)], lane, size.m, lane < size.n, a);
    T largest = 0, finite = 0;
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
        largest = max(largest, abs(a[i]));
        finite += a[i] * 0;
    }
    if (check) {
        const unsigned bad = __ballot_sync(~0u, !(finite == 0)), mine = ~0u >> (32 - Group) << (threadIdx.x - lane);
        if (writes && (bad & mine)) {
            check.note(b);
            writes = false;
        }
        __syncwarp();
        if (threadIdx.x == 0) check.part_is_read(gridDim.x);
    }
    const int e = far_exponent(largest);
    if (e != 0) {
#pragma unroll
        for (int i = 0; i < Rows; ++i) a[i] = scalbn(a[i], -e);
    }
    T tau = 0, scale = 0;
    factor_columns_from<Rows, Group>(size.k, lane, a, held, tau, scale);
    __syncwarp();

    const bool upper = out.kept == Factor::R;
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
        a[i] = i <= lane ? held.r[min(i, Group - 1)][lane] : upper ? T(0) : scale * held.x[lane][i - lane];
        if (e != 0 && i <= lane) a[i] = scalbn(a[i], e);
    }
    if (writes) store_column<T, Rows>(out.first[b], lane, upper ? size.k : size.m, a);
    if constexpr (FormQ) {
#pragma unroll
        for (int i = 0; i < Rows; ++i) a[i] = 0;
        form_columns_from<Rows, Group>(size.k, lane, held, tau, scale, a);
        if (writes && lane < size.k) store_column<T, Rows>(out.second[b], lane, size.m, a);
    } else if (!upper && writes && lane < size.k) {
        out.second[b](lane, 0) = tau;
    }
}

/// to := op(Q) from, p columns, Group at a time. If `upper`, from is [E; 0], E of k rows, or I without matrices.
template <class T, int Rows, int Group>
__global__ void __launch_bounds__(column_threads)
    apply_columns_kernel(BatchSize size, const T* X, const T* tau, bool transpose, int p, BatchEntries<const T> from,
                         bool upper, BatchEntries<T> to) {
    __shared__ alignas(16) T shared[column_threads / Group][Rows + 16 / int(sizeof(T))];
    const int lane = threadIdx.x % Group;
    T* const v = shared[threadIdx.x / Group];
    const Index b = Index(blockIdx.x) * (column_threads / Group) + threadIdx.x / Group;
    const Index of = min(b, size.count - 1);
    for (int first = 0; first < p; first += Group) {
        const int col = first + lane;
        T c[Rows];
        if (upper && from.empty()) {
#pragma unroll
            for (int i = 0; i < Rows; ++i) c[i] = i == col;
        } else {
            load_column<T, Rows>(from[of], col, upper ? size.k : size.m, col < p, c);
        }
        for (int step = 0; step < size.k; ++step) {
            const int j = transpose ? step : size.k - 1 - step;
            __syncwarp();
            for (int i = lane; i < Rows; i += Group) {
                v[i] = i > j && i < size.m ? X[(of * size.n + j) * size.ld + i] : i == j ? T(1) : T(0);
            }
            __syncwarp();
            reflect_own_column<T, Rows>(v, tau[of * size.k + j], c);
        }
        if (b < size.count && col < p) store_column<T, Rows>(to[b], col, size.m, c);
    }
}

}  // namespace quoin::cuda
