#pragma once

#include <cuda_runtime.h>

#include "quoin/matrix.hpp"

namespace quoin::cuda {

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

}  // namespace quoin::cuda
