#pragma once

#include "quoin/cuda.hpp"

namespace quoin::cuda {

/// C += AᵀB for tall A and B: split over rows, the parts added in a fixed order.
template <class T>
void multiply_accumulate(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B,
                         MatrixView<T, Cuda> C);

}  // namespace quoin::cuda
