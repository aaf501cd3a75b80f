#pragma once

// Products of f32 on the f16 tensor cores, at f32's accuracy.

#include "cuda/primitives.hpp"

namespace quoin::cuda {

/// C := op(H) C for H = I − V T Vᵀ, V's unit triangle implied, where the columns of C have norms up to 2 (up to a rounding
/// error of each update): VᵀC and V (T VᵀC) as three products of f16 each, added in f32. V.cols is a multiple of 8.
///
/// |error of VᵀC| <= (2⁻²¹ + 2⁻²³ · 33 + m/512 · u) |V|ᵀ|C| + 2⁻³⁹ √m: the operands' last bits, the tensor cores' sums, which
/// are cut off and not rounded, over 512 rows at most, and the sums of these. 4mnp flops counted, 12mnp done in f16.
void apply_by_halves(Context<Cuda>& ctx, Op op, MatrixView<const float, Cuda> V, MatrixView<const float, Cuda> Tf,
                     MatrixView<float, Cuda> C);

}  // namespace quoin::cuda
