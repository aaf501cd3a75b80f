#pragma once

// X := A Y₁⁻¹ Y₂⁻¹ … and G := XᵀX by cuBLAS in f64, `Tuning<Cuda>::solved_rows` rows at a time.

#include <span>

#include "cuda/runtime/device.hpp"
#include "primitives.hpp"

namespace quoin::cuda::plain {

/// X without data: not stored; X may be A. G without data: not computed; G may be a factor. Waits if there is a
/// certificate; writes nothing if it is refused.
template <class T>
void solve_and_gram(Context<Cuda>& ctx, MatrixView<const T, Cuda> A,
                    std::span<const MatrixView<const double, Cuda>> factors, MatrixView<T, Cuda> X,
                    MatrixView<double, Cuda> G, CertificateView<Cuda> certificate);

}  // namespace quoin::cuda::plain
