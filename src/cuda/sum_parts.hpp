#pragma once

#include "cuda/primitives.hpp"

namespace quoin::cuda {

/// C := Σ parts (+ C where `accumulate`), `count` of them, each C.rows×C.cols without gaps; strictly below the diagonal 0
/// where `upper`. In a fixed order, in double.
template <class T, class TC>
void sum_parts(Context<Cuda>& ctx, Index count, const T* parts, bool accumulate, bool upper, MatrixView<TC, Cuda> C);

}  // namespace quoin::cuda
