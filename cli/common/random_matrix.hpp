#pragma once

#include "quoin/matrix.hpp"

namespace quoin::cli {

/// Returns a matrix of independent standard normal numbers, made in parallel; the same `seed` and shape give the same
/// matrix for any number of threads.
template <class T>
Matrix<T> normal_matrix(Index rows, Index cols, std::uint64_t seed = 1);

/// Copies `bytes` bytes with every thread.
void copy_in_parallel(void* to, const void* from, std::size_t bytes);

}  // namespace quoin::cli
