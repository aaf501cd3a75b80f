#pragma once

// Products of f32 on the f16 tensor cores, at f32's accuracy.

#include "cuda/primitives.hpp"

namespace quoin::cuda {

/// C := op(H) C for H = I − V T Vᵀ, V's unit triangle implied, where the columns of C have norms up to 2 (up to a rounding
/// error of each update): VᵀC and V (T VᵀC) as three products of f16 each, added in f32. V.cols is a multiple of 8.
///
/// The operands are known to 2u, u = 2⁻²⁴, and 2⁻³⁹. The tensor cores cut sums off instead of rounding them, which makes them
/// too small by about 16u in VᵀC (24 steps of 16 rows, an ulp at most each, two thirds of the sum on the average), and by
/// less in the update: ‖error‖ is up to 16u‖C‖ a column above that of products in f32, and measured beside that. 4mnp flops
/// counted, 12mnp done in f16.
void apply_by_halves(Context<Cuda>& ctx, Op op, MatrixView<const float, Cuda> V, MatrixView<const float, Cuda> Tf,
                     MatrixView<float, Cuda> C);

}  // namespace quoin::cuda
