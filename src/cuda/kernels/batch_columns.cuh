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

/// a := column j of A. One that is not there is that of a unit matrix: zeros would be scaled at every step.
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
    for (int i = 0; i < Rows; ++i) a[i] = exists && i < m ? p[i * A.row_stride] : T(!exists && i == j);
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

/// Whether row i is known, while compiling, not to be below row j.
template <int J>
__device__ constexpr bool never_below(int i, std::integral_constant<int, J>) {
    return i <= J;
}
__device__ constexpr bool never_below(int, int) { return false; }

/// a_j, First <= j < First + 8.
template <int First, class T, int Rows, class J>
__device__ __forceinline__ T entry(J j, const T (&a)[Rows]) {
    T own = 0;
#pragma unroll
    for (int i = First; i < First + 8 && i < Rows; ++i) own = i == j ? a[i] : own;
    return own;
}
/// x := column j below row j, from the lane that has it, to shared memory, with zeros above; `behind` behind it.
template <int First, class T, int Rows, class J>
__device__ __forceinline__ void publish_column(J j, const T (&a)[Rows], T behind, T* x) {
#pragma unroll
    for (int i = First; i < Rows; ++i) x[i] = i > j ? a[i] : T(0);
    x[Rows] = behind;
}
/// x := what was published, 16 bytes at a time.
template <int First, class T, int Rows>
__device__ __forceinline__ void read_column(const T* published, T (&x)[Rows]) {
    constexpr int W = 16 / sizeof(T);
    struct alignas(16) Words {
        T x[W];
    };
#pragma unroll
    for (int i = First; i < Rows; i += W) {
        const Words words = *reinterpret_cast<const Words*>(published + i);
#pragma unroll
        for (int w = 0; w < W; ++w) x[i + w] = words.x[w];
    }
}
template <int First, class T, int Rows, class J>
__device__ __forceinline__ T dot_own_column(J j, const T (&x)[Rows], const T (&a)[Rows]) {
    T s[4] = {};
#pragma unroll
    for (int i = First; i < Rows; ++i) {
        if (!never_below(i, j)) s[i % 4] += x[i] * a[i];
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/// Step j, of those from First to First + 7. tau: of the lane's own column.
template <int Group, int First, class T, int Rows, class J>
__device__ __forceinline__ void factor_column(J j, int lane, T (&a)[Rows], T* published, T& tau) {
    T x[Rows];
    const auto find_dots = [&] {
        if (lane == j) publish_column<First>(j, a, entry<First>(j, a), published);
        __syncwarp();
        read_column<First>(published, x);
        return dot_own_column<First>(j, x, a);
    };
    T s = find_dots(), below = __shfl_sync(~0u, s, j, Group), alpha = published[Rows];
    int e = 0;
    if (__any_sync(~0u, fma(alpha, alpha, below) < least_squares_kept<T>())) {
        // 2^-e x in the place of x, where its squares lose digits
        T largest = 0;
#pragma unroll
        for (int i = First; i < Rows; ++i) largest = i >= j ? max(largest, abs(a[i])) : largest;
        const bool small = fma(alpha, alpha, below) < least_squares_kept<T>();
        e = __shfl_sync(~0u, small && largest > 0 ? ilogb(largest) : 0, j, Group);
        if (lane == j) {
#pragma unroll
            for (int i = First; i < Rows; ++i) a[i] = i >= j ? scalbn(a[i], -e) : a[i];
        }
        __syncwarp();
        s = find_dots();
        below = __shfl_sync(~0u, s, j, Group);
        alpha = published[Rows];
    }
    const Reflector<T> h(alpha, below);
    const T own = entry<First>(j, a);
    // w = τ (a_jl + vᵀa_l), a_l −= v w behind column j; v itself in it
    const T w = lane > j ? h.tau * fma(h.scale, s, own) : T(0), factor = lane == j ? h.scale : -w * h.scale;
#pragma unroll
    for (int i = First; i < Rows; ++i) {
        if (never_below(i, j)) continue;
        const T base = lane == j && i > j ? T(0) : a[i];
        a[i] = fma(factor, x[i], base);
    }
    const T row = lane == j ? (e == 0 ? h.beta : scalbn(h.beta, e)) : own - w;
#pragma unroll
    for (int i = First; i < First + 8 && i < Rows; ++i) a[i] = i == j ? row : a[i];
    if (lane == j) tau = h.tau;
}

/// step(j) for j from First up to First + 7, below `last`; or down. If `Constant`, each step has instructions of its own, which leave
/// out what is above its column.
template <bool Constant, int First, bool Up, class Step>
__device__ __forceinline__ void for_each_step(int last, Step step) {
    if constexpr (Constant) {
        unrolled<8>([&](auto x) {
            constexpr auto j = std::integral_constant<int, First + (Up ? x : 7 - x)>();
            if (j < last) step(j);
        });
    } else if (Up) {
        for (int j = First; j < last; ++j) step(j);
    } else {
        for (int j = last - 1; j >= First; --j) step(j);
    }
}
/// Two columns in shared memory, for steps to take turns: 16 bytes apart from the next matrix's banks.
template <class T, int Rows>
using Published = T[2][Rows + 16 / int(sizeof(T))];

/// The steps from First on.
template <int Group, bool Constant, int First, class T, int Rows>
__device__ __forceinline__ void factor_columns_from(int k, int lane, T (&a)[Rows], Published<T, Rows>& published,
                                                    T& tau) {
    if constexpr (First < Group && First < Rows) {
        for_each_step<Constant, First, true>(
            min(First + 8, k), [&](auto j) { factor_column<Group, First>(j, lane, a, published[j % 2], tau); });
        factor_columns_from<Group, Constant, First + 8>(k, lane, a, published, tau);
    }
}
/// c, a column of a unit matrix, := that of Q, by the reflectors from First on.
template <int Group, bool Constant, int First, class T, int Rows>
__device__ __forceinline__ void form_columns_from(int k, int lane, const T (&a)[Rows], Published<T, Rows>& published,
                                                  T tau, T (&c)[Rows]) {
    if constexpr (First < Group && First < Rows) {
        form_columns_from<Group, Constant, First + 8>(k, lane, a, published, tau, c);
        for_each_step<Constant, First, false>(min(First + 8, k), [&](auto j) {
            T* const shared = published[j % 2];
            if (lane == j) publish_column<First>(j, a, tau, shared);
            __syncwarp();
            T x[Rows];
            read_column<First>(shared, x);
            // w = τ (c_j + vᵀc), c −= v w
            const T own = entry<First>(j, c), w = shared[Rows] * (own + dot_own_column<First>(j, x, c));
#pragma unroll
            for (int i = First; i < Rows; ++i) {
                if (!never_below(i, j)) c[i] = fma(-w, x[i], c[i]);
                if (i < First + 8 && i == j) c[i] = own - w;
            }
        });
    }
}

inline constexpr int column_threads = 128;

/// Unless it is null, *first_bad gets the first matrix with NaN or Inf, and nothing is written of such a matrix. The first output may
/// be A.
template <class T, int Rows, int Group, bool Constant, bool FormQ>
__global__ void __launch_bounds__(column_threads)
    factor_columns(BatchSize size, BatchEntries<const T> A, BatchOutputs<T> out, unsigned long long* first_bad) {
    __shared__ alignas(16) Published<T, Rows> shared[column_threads / Group];
    auto& published = shared[threadIdx.x / Group];
    const int lane = threadIdx.x % Group;
    const Index b = Index(blockIdx.x) * (column_threads / Group) + threadIdx.x / Group;
    const bool exists = b < size.count && lane < size.n;
    T a[Rows], tau = 0;
    load_column<T, Rows>(A[min(b, size.count - 1)], lane, size.m, exists, a);
    T largest = 0, finite = 0;
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
        largest = max(largest, abs(a[i]));
        finite += a[i] * 0;
    }
    bool writes = exists;
    if (first_bad) {
        const unsigned bad = __ballot_sync(~0u, !(finite == 0)), mine = ~0u >> (32 - Group)
                                                                                   << (threadIdx.x % 32 - lane);
        if (bad & mine) {
            atomicMin(first_bad, static_cast<unsigned long long>(b));
            writes = false;
        }
    }
    const int e = far_exponent(largest);
    if (e != 0) {
#pragma unroll
        for (int i = 0; i < Rows; ++i) a[i] = scalbn(a[i], -e);
    }
    factor_columns_from<Group, Constant, 0>(size.k, lane, a, published, tau);

    const bool upper = out.kept == Factor::R;
    if constexpr (FormQ) {
        T c[Rows];
#pragma unroll
        for (int i = 0; i < Rows; ++i) c[i] = i == lane;
        __syncwarp();
        form_columns_from<Group, Constant, 0>(size.k, lane, a, published, tau, c);
        if (writes && lane < size.k) store_column<T, Rows>(out.second[b], lane, size.m, c);
    } else if (!upper && writes && lane < size.k) {
        out.second[b](lane, 0) = tau;
    }
    if (!writes) return;
    if (e != 0) {
#pragma unroll
        for (int i = 0; i < Rows; ++i) a[i] = i <= lane ? scalbn(a[i], e) : a[i];
    }
    if (upper) {
#pragma unroll
        for (int i = 0; i < Rows; ++i) a[i] = i <= lane ? a[i] : T(0);
    }
    store_column<T, Rows>(out.first[b], lane, upper ? size.k : size.m, a);
}

/// C := op(Q) C of p columns, Group at a time; of the unit matrix where `from` has no data.
template <class T, int Rows, int Group>
__global__ void __launch_bounds__(column_threads)
    apply_columns(BatchSize size, const T* X, const T* tau, bool transpose, int p, BatchEntries<const T> from,
                  bool identity, BatchEntries<T> to) {
    __shared__ alignas(16) T shared[column_threads / Group][Rows + 16 / int(sizeof(T))];
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
