#pragma once

// C := X B in f32, corrected (products_by_halves.hpp), by Hopper's matrix unit, for one X and many columns of B.

#include <cuda_fp16.h>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda {

/// X n×K as two f16 for each number (products/corrected_product.cuh), in a frame's memory.
struct CorrectedOperand {
    __half* data;
    Index n, K;
    const unsigned* largest;  ///< the bits of its largest magnitude, or null: entries are at most 2
};

/// X := op(A), or of A's unit lower triangle. `largest` as the result has it. 4 bytes an entry, in whole tiles.
CorrectedOperand corrected_operand(Context<Cuda>& ctx, Arena::Frame& frame, Op op, bool unit_lower,
                                   MatrixView<const float, Cuda> A, const unsigned* largest);

/// C := X B for B K×p with entries of at most 2√2. Operands are known to 2⁻²³ and 2⁻³⁹ of the largest. The tensor cores
/// cut off three sums for every 16 terms. They make sums of 64 terms, which are too small by up to 4 ulp if nothing
/// cancels, and f32 adds these. 6nKp flops of f16.
void multiply_corrected(Context<Cuda>& ctx, const CorrectedOperand& X, MatrixView<const float, Cuda> B,
                        MatrixView<float, Cuda> C);

/// C := C − V W for V m×k, whose transpose is split and not scaled, and W k×p with its largest magnitude. k is not too
/// large where `has_corrected_update`. Operands are known as above. Sums of 3k terms, which f32 subtracts, are too
/// small by up to 3k/16 ulp. 6mkp flops of f16.
bool has_corrected_update(const CorrectedOperand& V_transposed);
void subtract_corrected(Context<Cuda>& ctx, const CorrectedOperand& V_transposed, MatrixView<const float, Cuda> W,
                        const unsigned* largest, MatrixView<float, Cuda> C);

}  // namespace quoin::cuda
