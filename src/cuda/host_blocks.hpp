#pragma once

// Blocks of matrices between the host's memory and the device's.

#include <algorithm>
#include <limits>

#include "cuda/error.hpp"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// The widest row of a two-dimensional copy that CUDA takes.
inline constexpr Index most_pitch = std::numeric_limits<std::int32_t>::max();

inline bool is_pinned(const void* p) {
    cudaPointerAttributes attributes;
    QUOIN_CUDA_CHECK(cudaPointerGetAttributes(&attributes, p));
    return attributes.type != cudaMemoryTypeUnregistered;
}

/// h×q elements between pinned memory and the device.
template <class T>
void enqueue_copy(T* to, Index to_ld, const T* from, Index from_ld, Index h, Index q, cudaMemcpyKind kind,
                  cudaStream_t stream) {
    const Index size = sizeof(T);
    if (h == 0) return;
    if (to_ld == h && from_ld == h) {
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(to, from, h * q * size, kind, stream));
        return;
    }
    if (q > 1 && std::max(to_ld, from_ld) * size <= most_pitch) {
        QUOIN_CUDA_CHECK(cudaMemcpy2DAsync(to, to_ld * size, from, from_ld * size, h * size, q, kind, stream));
        return;
    }
    for (Index j = 0; j < q; ++j) {
        QUOIN_CUDA_CHECK(cudaMemcpyAsync(to + j * to_ld, from + j * from_ld, h * size, kind, stream));
    }
}

/// Calls f(rows, columns) for blocks of at most `capacity` elements, in order.
template <class F>
void for_each_block(Index m, Index n, Index capacity, F f) {
    const Index h = std::min(m, capacity), q = std::max<Index>(1, capacity / h);
    for (Index j = 0; j < n; j += q) {
        for (Index i = 0; i < m; i += h) f(Range{i, std::min(m, i + h)}, Range{j, std::min(n, j + q)});
    }
}

/// B := A in host memory, by all threads.
template <class T>
void copy_in_parallel(MatrixView<const T> A, MatrixView<T> B) {
    constexpr Index piece = Index(1) << 14;
#pragma omp parallel for collapse(2) schedule(static) if (A.rows * A.cols > piece)
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; i += piece) {
            std::copy_n(A.at(i, j), std::min(piece, A.rows - i), B.at(i, j));
        }
    }
}

}  // namespace quoin::cuda
