#pragma once

// 16 bytes, which one instruction loads or stores.

namespace quoin::cuda {

template <class T>
inline constexpr int vector_size = 16 / sizeof(T);

template <class T>
struct alignas(16) Vector {
    T at[vector_size<T>];
};

}  // namespace quoin::cuda
