#pragma once

// A column in the registers of a warp, R elements a lane, moved 16 bytes at a time: with v elements in 16 bytes, lane l
// holds the rows l·v, …, l·v + v − 1 of every 32·v, so that r is row (r / v)·32·v + l·v + r % v.

#include "cuda/arch/sm70_vector.cuh"
#include "quoin/cuda.hpp"

namespace quoin::cuda {

template <class T>
__device__ inline int row_of(int r) {
    constexpr int v = vector_size<T>;
    return r / v * (32 * v) + static_cast<int>(threadIdx.x % 32) * v + r % v;
}

/// Shared memory of 32·R elements, aligned to 16 bytes, and registers.
template <class T, int R>
__device__ inline void load_vectors(const T* x, T (&values)[R]) {
#pragma unroll
    for (int r = 0; r < R; r += vector_size<T>) {
        const auto vector = *reinterpret_cast<const Vector<T>*>(x + row_of<T>(r));
#pragma unroll
        for (int i = 0; i < vector_size<T>; ++i) values[r + i] = vector.at[i];
    }
}
template <class T, int R>
__device__ inline void store_vectors(T* x, const T (&values)[R]) {
#pragma unroll
    for (int r = 0; r < R; r += vector_size<T>) {
        Vector<T> vector;
#pragma unroll
        for (int i = 0; i < vector_size<T>; ++i) vector.at[i] = values[r + i];
        *reinterpret_cast<Vector<T>*>(x + row_of<T>(r)) = vector;
    }
}

/// The first `size` rows of a column in memory, zeros beyond; `aligned` says that it starts at a multiple of 16 bytes.
template <class T, int R>
__device__ inline void load_column(const T* column, Index size, bool aligned, T (&values)[R]) {
    if (aligned && size == 32 * R) return load_vectors<T, R>(column, values);
#pragma unroll
    for (int r = 0; r < R; ++r) values[r] = row_of<T>(r) < size ? column[row_of<T>(r)] : T(0);
}
template <class T, int R>
__device__ inline void store_column(T* column, Index size, bool aligned, const T (&values)[R]) {
    if (aligned && size == 32 * R) return store_vectors<T, R>(column, values);
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (row_of<T>(r) < size) column[row_of<T>(r)] = values[r];
    }
}

}  // namespace quoin::cuda
