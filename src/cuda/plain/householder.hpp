#pragma once

// Householder QR by cuSOLVER: of panels that no kernel holds, and of all matrices where QUOIN_KERNELS is plain.

#include "cuda/runtime/device.hpp"

namespace quoin::cuda::plain {

/// A = H R (geqrf), tau of min(m, n) entries. Squares of A's entries must be in range. 2mn² flops.
template <class T>
void factor(Context<Cuda>& ctx, MatrixView<T, Cuda> A, T* tau);

}  // namespace quoin::cuda::plain
