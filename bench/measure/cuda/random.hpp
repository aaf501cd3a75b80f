#pragma once

#include "measure/cuda/accuracy.hpp"
#include "quoin/cuda.hpp"

namespace quoin::bench {

/// A := independent standard normal numbers, the same for the same shape. Enqueued.
template <class T>
void fill_normal(Context<Cuda>& ctx, Matrix<T, Cuda>& A);

/// The columns of that matrix, made again at every call: nothing keeps them. Enqueued.
template <class T>
ColumnSource<T> normal_columns(Context<Cuda>& ctx);

}  // namespace quoin::bench
