#pragma once

// Products of f32 on the tensor cores of 16 bits: at f32's accuracy, or with rounded operands.

#include "cuda/products/corrected_product.hpp"
#include "cuda/runtime/device.hpp"

namespace quoin::cuda {

/// C := AᵀB (+ C where `accumulate`) for A m×n and B m×p, and C := C − A B. Each operand is scaled by the power of two
/// that brings its largest entry near f16's largest, so that nothing overflows whatever the scale.
///
/// With x_max, y_max the operands' largest magnitudes, an entry x of one is known to
///
///     FP16        2⁻¹¹ |x| + 2⁻³⁹ x_max
///     BF16        2⁻⁸ |x|
///     Corrected   2⁻²³ |x| + 2⁻³⁹ x_max,   three products of f16 for one,
///
/// and sums are in f32. The tensor cores cut them off, by up to an ulp for every 16 terms. Over runs of 384 to 1536
/// rows of AᵀB, and 2048 columns of A, corrected, that is 16u to 64u and 85u of a sum without cancellation, u = 2⁻²⁴.
/// 2mnp flops done, corrected 6mnp; none counted. Halves of A and of B take up to 1 GiB each.
void multiply_transposed_by_halves(Context<Cuda>& ctx, Arithmetic arithmetic, MatrixView<const float, Cuda> A,
                                   MatrixView<const float, Cuda> B, MatrixView<float, Cuda> C, bool accumulate);
void subtract_product_by_halves(Context<Cuda>& ctx, Arithmetic arithmetic, MatrixView<const float, Cuda> A,
                                MatrixView<const float, Cuda> B, MatrixView<float, Cuda> C);

/// S := QᵀW and W := W − Q S for a Q with columns of norms up to 2. The halves of Q are made once for both. With
/// `again`, as `block_gram_schmidt_step`. Returns false and does nothing if the halves take more than 4 GiB in one
/// layout, or the workspace is limited and has no room for them.
bool project_by_halves(Context<Cuda>& ctx, Arithmetic arithmetic, bool again, MatrixView<const float, Cuda> Q,
                       MatrixView<float, Cuda> W, MatrixView<float, Cuda> S);

/// H = I − V T Vᵀ, or its transpose, V's unit triangle implied, as products by halves take it. In a frame's memory, 4
/// bytes an entry of V, and 6 more where V has more than 256 columns.
struct CorrectedReflectors {
    CorrectedOperand V_transposed, T;
    __half* V_sides = nullptr;  ///< for C − V W by cuBLAS, if there is no kernel for it
    Index ld = 0;               ///< of V_sides
};
/// V.cols is a multiple of 8.
CorrectedReflectors corrected_reflectors(Context<Cuda>& ctx, Arena::Frame& frame, Op op,
                                         MatrixView<const float, Cuda> V, MatrixView<const float, Cuda> Tf);

/// C := op(H) C, where the columns of C have norms up to 2 (up to a rounding error of each update): VᵀC, T VᵀC and V (T
/// VᵀC) as three products of f16 each, added in f32.
///
/// The operands are known to 2u, u = 2⁻²⁴, and 2⁻³⁹. The tensor cores cut sums off instead of rounding them, which
/// makes them too small by about 6u in VᵀC and T W (corrected_product.hpp), and by less in the update up to 256
/// columns; with 1024 columns, and a C whose products do not cancel, ‖error‖ is 45u where f32 leaves 9u. 4mnp flops
/// counted, 12mnp done in f16.
void apply_corrected(Context<Cuda>& ctx, const CorrectedReflectors& H, MatrixView<float, Cuda> C);

}  // namespace quoin::cuda
