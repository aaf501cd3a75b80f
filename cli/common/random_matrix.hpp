#pragma once

#include "quoin/matrix.hpp"

namespace quoin::cli {

/// Fills A with independent standard normal numbers, in parallel; the same `seed` and shape give the same matrix for
/// any number of threads.
template <class T>
void fill_normal(Matrix<T>& A, std::uint64_t seed);

/// Copies `bytes` bytes with every thread.
void copy_in_parallel(void* to, const void* from, std::size_t bytes);

}  // namespace quoin::cli
