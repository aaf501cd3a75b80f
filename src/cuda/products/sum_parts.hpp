#pragma once

#include "cuda/runtime/device.hpp"

namespace quoin::cuda {

/// C := Σ parts (+ C where `accumulate`), `count` of them, each C.rows×C.cols without gaps; strictly below the diagonal
/// 0 where `upper`. In a fixed order, in double.
template <class T, class TC>
void sum_parts(Context<Cuda>& ctx, Index count, const T* parts, bool accumulate, bool upper, MatrixView<TC, Cuda> C);

/// Rows of one part: enough parts for two waves of GEMM tiles, none so short that writing it costs as much as the
/// product, and none so long that the rounding errors of one dot product show.
Index rows_of_part(Context<Cuda>& ctx, Index m, Index n, Index p);

/// C := AᵀB (+ C if `accumulate`) over parts of `rows` rows; 0 strictly below the diagonal if `upper`.
template <class T, class TC>
void multiply_split(Context<Cuda>& ctx, MatrixView<const T, Cuda> A, MatrixView<const T, Cuda> B, bool accumulate,
                    bool upper, MatrixView<TC, Cuda> C);

}  // namespace quoin::cuda
