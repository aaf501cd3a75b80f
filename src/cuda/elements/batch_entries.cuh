#pragma once

// Shared by the kernels for batches: the addresses of matrices, loops of constants, and a reflector from a column's
// norm.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cuda/arch/sm70_approximate.cuh"
#include "cuda/runtime/error.hpp"
#include "primitives/small_batch.hpp"
#include "quoin/cuda.hpp"
#include "quoin/scalar.hpp"

namespace quoin::cuda {

/// The matrices of a batch: an array with strides, or a list.
template <class T>
struct BatchEntries {
    struct One {
        T* data;
        Index row_stride, col_stride;
        __device__ T& operator()(Index i, Index j) const { return data[i * row_stride + j * col_stride]; }
    };

    T* data = nullptr;
    Index row_stride = 1, col_stride = 1, stride = 0;
    const One* list = nullptr;

    __device__ bool empty() const { return !data && !list; }
    __device__ One operator[](Index b) const { return list ? list[b] : One{data + b * stride, row_stride, col_stride}; }
};

/// The outputs of each matrix. Factor::VR: first := V and R, second := tau. Factor::R: first := R and, if `form_q`,
/// second := the thin Q.
template <class T>
struct BatchOutputs {
    Factor kept;
    bool form_q;
    BatchEntries<T> first, second;
};

/// A list for kernels. It lies in pageable memory, which is read before the call returns.
template <class E>
Matrix<E, Cuda> on_device(Context<Cuda>& ctx, const std::vector<E>& list) {
    Matrix<E, Cuda> copy(ctx, static_cast<Index>(list.size()), 1);
    QUOIN_CUDA_CHECK(
        cudaMemcpyAsync(copy.data(), list.data(), list.size() * sizeof(E), cudaMemcpyHostToDevice, ctx.stream()));
    return copy;
}

/// The size of a batch of m×n matrices with packed reflectors: V and R of matrix b at X + b·ld·n, tau at tau + b·k.
struct BatchSize {
    BatchSize(Index count_, Index m_, Index n_, Index ld_)
        : count(count_), m(static_cast<int>(m_)), n(static_cast<int>(n_)), k(std::min(m, n)), ld(ld_) {}
    Index count;
    int m, n, k;
    Index ld;
};

/// No matrix has NaN or Inf.
inline constexpr unsigned long long none_bad = ~0ull;

/// Reports to the host the first matrix with NaN or Inf, or none_bad, as soon as the last part of a batch is read. The
/// kernel goes on meanwhile. By default nothing is reported.
struct FiniteCheck {
    unsigned long long* told = nullptr;        ///< in pinned memory
    unsigned long long* first = nullptr;       ///< on the device; none_bad between kernels
    unsigned long long* parts_read = nullptr;  ///< on the device; 0 between kernels

    __device__ explicit operator bool() const { return told != nullptr; }
    /// Notes that matrix b has NaN or Inf. Called before the part's `part_is_read`, with a barrier of its threads in
    /// between.
    __device__ void note(Index b) const {
        atomicMin(first, static_cast<unsigned long long>(b));
        __threadfence();
    }
    /// Counts a part of `parts`. Called by one thread of each part.
    __device__ void part_is_read(Index parts) const {
        if (atomicAdd(parts_read, 1ull) + 1 < static_cast<unsigned long long>(parts)) return;
        *parts_read = 0;
        tell(atomicExch(first, none_bad));
    }
    /// Tells the host at once, for a batch of one part.
    __device__ void tell(unsigned long long bad) const { *static_cast<volatile unsigned long long*>(told) = bad; }
};

template <int N, class F, int... I>
__device__ __forceinline__ void unrolled(F&& f, std::integer_sequence<int, I...>) {
    (f(std::integral_constant<int, I>()), ...);
}
/// f(0), f(1), …, f(N − 1), each a constant.
template <int N, class F>
__device__ __forceinline__ void unrolled(F&& f) {
    unrolled<N>(f, std::make_integer_sequence<int, N>());
}

template <class T>
__device__ constexpr T least_squares_kept() {
    return std::numeric_limits<T>::min() / (std::numeric_limits<T>::epsilon() * std::numeric_limits<T>::epsilon());
}
/// e of a column whose largest entry is beyond 2^±safe, else 0.
template <class T>
__device__ int far_exponent(T largest) {
    const bool far = (largest > Scalar<T>::safe_entry || largest < 1 / Scalar<T>::safe_entry) && largest > 0;
    return far && largest <= std::numeric_limits<T>::max() ? ilogb(largest) : 0;
}

/// β, τ and 1/(α − β) of α above a column whose squares add up to `below`: v = x/(α − β). α² + below is 0 or at least
/// least_squares_kept.
template <class T>
struct Reflector {
    __device__ __forceinline__ Reflector(T alpha, T below) {
        // ‖x‖ = √s = s y + (s − (s y)²) y/2, d = |α − β| = |α| + ‖x‖, τ = d/‖x‖
        const T squares = fma(alpha, alpha, below), y = reciprocal_root(squares), root = squares * y,
                norm = fma(fma(-root, root, squares), y / 2, root), d = abs(alpha) + norm, inverse = reciprocal(d);
        const bool identity = below == 0, negative = alpha < 0;
        beta = identity ? alpha : negative ? norm : -norm;
        tau = identity ? T(0) : d * fma(y, fma(-norm, y, T(1)), y);
        scale = identity ? T(0) : negative ? -inverse : inverse;
    }
    T beta, tau, scale;
};

}  // namespace quoin::cuda
