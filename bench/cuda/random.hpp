#pragma once

#include "quoin/cuda.hpp"

namespace quoin::bench {

/// A := independent standard normal numbers, the same for the same shape. Enqueued.
template <class T>
void fill_normal(Context<Cuda>& ctx, Matrix<T, Cuda>& A);

}  // namespace quoin::bench
