#pragma once

// The m×m Q around an explicit thin Q.

#include "algorithms/one_matrix/reflector_forest.hpp"

namespace quoin {

/// The m×m Q around an explicit thin Q, m×n, m >= n: (I − Y (I + R_q)⁻ᵀ Yᵀ) diag(W, I), with Q₁ = −W R_q the QR
/// factorization of Q's top block (W n×n orthogonal, diag(R_q) >= 0) and Y = Q − [W; 0] (a basis-kernel form: Sun and
/// Bischof 1995, Yamamoto 2012). ‖(I + R_q)⁻¹‖ is O(n) for every orthonormal Q.
template <class T, class D>
struct BasisKernel {
    ReflectorForest<T, D> W;  // W = (I − V T Vᵀ …) diag(signs)
    Matrix<T, D> signs;
    Matrix<T, D> K;  // I + R_q
};

/// Returns the kernel of the thin Q (m×n, m >= n).
template <class T, class D>
BasisKernel<T, D> basis_kernel_of(Context<D>& ctx, MatrixView<const T, D> Q);

/// C := op(Q) C for the m×m Q around the thin Q. C has m rows.
template <class T, class D>
void apply_basis(Context<D>& ctx, MatrixView<const T, D> Q, const BasisKernel<T, D>& kernel, Op op, MatrixView<T, D> C);

}  // namespace quoin
