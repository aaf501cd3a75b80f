#pragma once

// Many small matrices, factored by reflectors a column at a time, everything in registers.
//
//   a thread a column   m <= 64, n <= 32: `Group` lanes hold a matrix, lane l its column l. Several matrices a warp.
//                       Step j: lane j leaves x = A(j:m, j) in shared memory. All lanes find s_l = Σ_{i>j} x_i a_il, of which s_j is
//                       the norm's, then β, τ and 1/(α − β), each for itself, and update.
//   a block a matrix    larger ones: warp w holds columns w, w + Warps, …; lane l of it rows l, l + 32, …. The warp of column j + 1
//                       updates that first and makes the next reflector while the others are still at work: one barrier a column.
//
// Products with Q (and Q itself, which is Q I) have the same shape: columns of C in place of A's, reflectors from memory.
// Bound by latency: a column costs a reduction, a square root, a division and a barrier one after the other.

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// The matrices of a batch: an array with strides, or a list.
template <class T>
struct BatchEntries {
    T* data = nullptr;
    Index row_stride = 1, col_stride = 1, stride = 0;
    const MatrixView<T, Cuda>* list = nullptr;

    struct One {
        T* data;
        Index row_stride, col_stride;
        __device__ T& operator()(Index i, Index j) const { return data[i * row_stride + j * col_stride]; }
    };
    __device__ One operator[](Index b) const {
        if (list) return {list[b].data, 1, list[b].ld};
        return {data + b * stride, row_stride, col_stride};
    }
};

/// What a batch of m×n matrices with these packed reflectors has: V and R of matrix b at X + b·m·n, tau at tau + b·k.
struct BatchSize {
    Index count;
    int m, n, k;
};

/// No matrix has NaN or Inf.
inline constexpr unsigned long long none_bad = ~0ull;

template <class T>
__device__ constexpr T safe_entry() {
    return sizeof(T) == sizeof(float) ? T(0x1p30) : T(0x1p400);
}
template <class T>
__device__ constexpr T least_squares_kept() {
    return std::numeric_limits<T>::min() / (std::numeric_limits<T>::epsilon() * std::numeric_limits<T>::epsilon());
}
/// e of a column whose largest entry is beyond 2^±safe, else 0.
template <class T>
__device__ int far_exponent(T largest) {
    const bool far = (largest > safe_entry<T>() || largest < 1 / safe_entry<T>()) && largest > 0;
    return far && largest <= std::numeric_limits<T>::max() ? ilogb(largest) : 0;
}

/// β, τ and 1/(α − β) of α above a column whose squares add up to `below`: v = x/(α − β).
template <class T>
struct Reflector {
    __device__ Reflector(T alpha, T below) : beta(alpha), tau(0), scale(0) {
        if (below == 0) return;
        const T norm = root(fma(alpha, alpha, below));
        beta = alpha < 0 ? norm : -norm;
        tau = (beta - alpha) * reciprocal(beta);
        scale = reciprocal(alpha - beta);
    }
    T beta, tau, scale;

private:
    static __device__ float root(float x) { return __fsqrt_rn(x); }
    static __device__ double root(double x) { return __dsqrt_rn(x); }
    static __device__ float reciprocal(float x) { return __frcp_rn(x); }
    static __device__ double reciprocal(double x) { return __drcp_rn(x); }
};

// ---- A thread a column ---------------------------------------------------------------------------------------------------

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
    if (!(finite == 0)) atomicMin(first_bad, static_cast<unsigned long long>(b));
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

// ---- A block a matrix ----------------------------------------------------------------------------------------------------

/// The sums over the lanes of C values each, C a power of two, in every lane.
template <int C, class T>
__device__ void sum_lanes(T (&x)[C]) {
    const int lane = threadIdx.x % 32;
    int step = 16;
#pragma unroll
    for (int half = C / 2; half > 0; half /= 2, step /= 2) {
        const bool upper = lane & step;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const T kept = upper ? x[i + half] : x[i], given = upper ? x[i] : x[i + half];
            x[i] = kept + __shfl_xor_sync(~0u, given, step);
        }
    }
    T own = x[0];
#pragma unroll
    for (; step > 0; step /= 2) own += __shfl_xor_sync(~0u, own, step);
        // the lanes whose upper bits are those of i, from the highest on, have the sum of x_i
#pragma unroll
    for (int i = 0; i < C; ++i) {
        int from = 0;
#pragma unroll
        for (int half = C / 2, bit = 16; half > 0; half /= 2, bit /= 2) from |= (i & half) ? bit : 0;
        x[i] = __shfl_sync(~0u, own, from);
    }
}
template <class T>
__device__ T sum_lanes(T x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

constexpr int power_of_two_within(int c) { return c >= 8 ? 8 : c >= 4 ? 4 : c >= 2 ? 2 : 1; }

/// s_c = Σ v_i a_ic for the columns c >= First that `wanted(c)` names, and perhaps others; the rest of s is 0.
template <int R, int C, int First = 0, class T, class Wanted>
__device__ void dot_warp_columns(const T (&v)[R], const T (&a)[C][R], T (&s)[C], Wanted wanted) {
    if constexpr (First < C) {
        constexpr int P = power_of_two_within(C - First);
        bool any = false;
#pragma unroll
        for (int c = 0; c < P; ++c) any = any || wanted(First + c);
        T part[P] = {};
        if (any) {
#pragma unroll
            for (int c = 0; c < P; ++c) {
#pragma unroll
                for (int r = 0; r < R; ++r) part[c] += v[r] * a[First + c][r];
            }
            sum_lanes<P>(part);
        }
#pragma unroll
        for (int c = 0; c < P; ++c) s[First + c] = part[c];
        dot_warp_columns<R, C, First + P>(v, a, s, wanted);
    }
}

/// The reflector of column j, made by its warp: v and behind it τ in shared memory, β and v in a.
template <int R, class T>
__device__ void make_warp_reflector(int j, T (&a)[R], T* v) {
    const int lane = threadIdx.x % 32;
    const auto look = [&](T(&alpha_below)[2]) {
        alpha_below[0] = alpha_below[1] = 0;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const int i = lane + 32 * r;
            if (i == j) alpha_below[0] = a[r];
            if (i > j) alpha_below[1] += a[r] * a[r];
        }
        sum_lanes<2>(alpha_below);
    };
    T found[2];
    look(found);
    int e = 0;
    if (fma(found[0], found[0], found[1]) < least_squares_kept<T>()) {
        // squares of 2^-e a keep their digits
        T largest = 0;
#pragma unroll
        for (int r = 0; r < R; ++r) largest = lane + 32 * r >= j ? max(largest, abs(a[r])) : largest;
#pragma unroll
        for (int step = 16; step > 0; step /= 2) largest = max(largest, __shfl_xor_sync(~0u, largest, step));
        e = largest > 0 ? ilogb(largest) : 0;
#pragma unroll
        for (int r = 0; r < R; ++r) a[r] = lane + 32 * r >= j ? scalbn(a[r], -e) : a[r];
        look(found);
    }
    const Reflector<T> h(found[0], found[1]);
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int i = lane + 32 * r;
        if (i > j) a[r] *= h.scale;
        v[i] = i > j ? a[r] : T(i == j);
        if (i == j) a[r] = e == 0 ? h.beta : scalbn(h.beta, e);
    }
    if (lane == 0) v[32 * R] = h.tau;
}

template <class T, int R, int C, int Warps>
__global__ void __launch_bounds__(32 * Warps)
    factor_block(BatchSize size, BatchEntries<const T> A, T* X, T* tau, unsigned long long* first_bad) {
    __shared__ T shared[2][32 * R + 1];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int m = size.m, n = size.n;
    for (Index b = blockIdx.x; b < size.count; b += gridDim.x) {
        const auto M = A[b];
        T a[C][R];
        int e[C];
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = warp + c * Warps;
            T largest = 0, finite = 0;
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const int i = lane + 32 * r;
                a[c][r] = i < m && j < n ? M(i, j) : T(0);
                largest = max(largest, abs(a[c][r]));
                finite += a[c][r] * 0;
            }
            if (!(finite == 0)) atomicMin(first_bad, static_cast<unsigned long long>(b));
#pragma unroll
            for (int step = 16; step > 0; step /= 2) largest = max(largest, __shfl_xor_sync(~0u, largest, step));
            e[c] = far_exponent(largest);
            if (e[c] != 0) {
#pragma unroll
                for (int r = 0; r < R; ++r) a[c][r] = scalbn(a[c][r], -e[c]);
            }
        }
        __syncthreads();
        if (warp == 0) make_warp_reflector<R>(0, a[0], shared[0]);
        for (int j = 0; j < size.k; ++j) {
            __syncthreads();
            const T* const v = shared[j % 2];
            const T t = v[32 * R];
            T u[R], s[C];
#pragma unroll
            for (int r = 0; r < R; ++r) u[r] = v[lane + 32 * r];
            if (threadIdx.x == 0) tau[b * size.k + j] = t;
            // a_l −= τ v (vᵀa_l)
            const int next = j + 1 < size.k && (j + 1) % Warps == warp ? j + 1 : j;
            if (next > j) {
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    if (warp + c * Warps != next) continue;
                    T sum = 0;
#pragma unroll
                    for (int r = 0; r < R; ++r) sum += u[r] * a[c][r];
                    const T w = t * sum_lanes(sum);
#pragma unroll
                    for (int r = 0; r < R; ++r) a[c][r] -= w * u[r];
                    make_warp_reflector<R>(next, a[c], shared[next % 2]);
                }
            }
            dot_warp_columns<R, C>(u, a, s, [&](int c) { return warp + c * Warps > next; });
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const T w = warp + c * Warps > next ? t * s[c] : T(0);
#pragma unroll
                for (int r = 0; r < R; ++r) a[c][r] -= w * u[r];
            }
        }
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = warp + c * Warps;
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const int i = lane + 32 * r;
                if (i < m && j < n)
                    X[b * m * n + Index(j) * m + i] = e[c] != 0 && i <= j ? scalbn(a[c][r], e[c]) : a[c][r];
            }
        }
    }
}

/// C := op(Q) C, columns c·Warps + w + blockIdx.y·C·Warps of it; of the unit matrix if `identity`.
template <class T, int R, int C, int Warps>
__global__ void __launch_bounds__(32 * Warps)
    apply_block(BatchSize size, const T* X, const T* tau, bool transpose, int p, BatchEntries<const T> from,
                bool identity, BatchEntries<T> to) {
    const int lane = threadIdx.x % 32, first = blockIdx.y * C * Warps + threadIdx.x / 32;
    const int m = size.m, k = size.k;
    for (Index b = blockIdx.x; b < size.count; b += gridDim.x) {
        T a[C][R];
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = first + c * Warps;
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const int i = lane + 32 * r;
                a[c][r] = identity ? T(i == j) : i < m && j < p ? from[b](i, j) : T(0);
            }
        }
        const T* const V = X + b * m * size.n;
        const auto reflector = [&](int j, T(&u)[R]) {
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const int i = lane + 32 * r;
                u[r] = i > j && i < m ? V[Index(j) * m + i] : T(i == j);
            }
        };
        T next[R];
        if (k > 0) reflector(transpose ? 0 : k - 1, next);
        for (int step = 0; step < k; ++step) {
            const int j = transpose ? step : k - 1 - step;
            T u[R];
#pragma unroll
            for (int r = 0; r < R; ++r) u[r] = next[r];
            if (step + 1 < k) reflector(transpose ? j + 1 : j - 1, next);
            T s[C];
            dot_warp_columns<R, C>(u, a, s, [&](int c) { return first + c * Warps < p; });
            const T t = tau[b * k + j];
#pragma unroll
            for (int c = 0; c < C; ++c) {
#pragma unroll
                for (int r = 0; r < R; ++r) a[c][r] -= t * s[c] * u[r];
            }
        }
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = first + c * Warps;
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const int i = lane + 32 * r;
                if (i < m && j < p) to[b](i, j) = a[c][r];
            }
        }
    }
}

}  // namespace quoin::cuda
