#pragma once

// 16 bytes of neighbouring elements of a column, which one instruction moves.

#include "quoin/cuda.hpp"

namespace quoin::cuda {

template <class T>
inline constexpr int vector_size = 16 / sizeof(T);

template <class T>
struct alignas(16) Vector {
    T at[vector_size<T>];
};

}  // namespace quoin::cuda
