#pragma once

// Small dense steps, n×n.

#include <span>

#include "primitives/context.hpp"
#include "quoin/qr.hpp"

namespace quoin {

/// The triangle of an n×n array that is meant; the rest of the array is not read.
enum class Triangle { UnitLower, Lower, Upper };
/// X := L⁻ᵀX or U⁻ᵀX and so on: X := op(A)⁻¹ X. n²p flops.
template <class T, class D>
void solve_triangle(Context<D>& ctx, Triangle triangle, Op op, View<const T, D> A, View<T, D> X);
/// X := op(A) X, or X := X op(A) (trmm). n²p flops.
template <class T, class D>
void multiply_triangle(Context<D>& ctx, Side side, Triangle triangle, Op op, View<const T, D> A, View<T, D> X);

/// Q − diag(signs) = L U in place, without pivoting: signs_j = −sgn of the pivot, so that every pivot is at least 1 in
/// magnitude and |L| <= 1 for orthonormal Q (Ballard et al. 2014). Q n×n, signs n×1. 2n³/3 flops.
template <class T, class D>
void signed_lu(Context<D>& ctx, View<T, D> Q, View<T, D> signs);

/// Properties of an upper triangular R (n×n) that the solvers check before they divide by it.
struct TriangleInspection {
    Index zero_column = -1;       ///< first column of zeros, or −1
    double condition = 1;         ///< κ₁(R), as `condition_estimate`
    double scaled_condition = 1;  ///< κ₁(R D), where the diagonal D scales the columns of R to unit norm
};
/// Condition numbers are estimates from below on the host (Hager 1984, Higham 1988), and come from R⁻¹ itself, in
/// double, on a GPU: n³/3 flops. Waits.
template <class T, class D>
TriangleInspection inspect_triangle(Context<D>& ctx, View<const T, D> R);

/// ‖(LU)⁻¹‖₁, L unit lower and U upper triangular in one n×n array; an estimate from below on the host, from the
/// inverse itself on a GPU. Infinity or NaN where U is singular. Waits.
template <class T, class D>
double inverse_norm_estimate(Context<D>& ctx, View<const T, D> LU);

/// A = U diag(s) Vᵀ for an n×n A, on the host m×n with m >= n. A is lost. U (m×n) and Vt (n×n) may have null data: then
/// only s is computed. Waits.
///
/// On the host divide and conquer, or QR iteration where that does not converge: by LAPACK's gesdd on one thread, or
/// from 128 columns on by all threads, after a reduction to bidiagonal form. The bits depend on no number of threads.
/// 4mn² − 4n³/3 flops without vectors, 8mn² + 4n³/3 with them. A GPU hands few columns to the host
/// (cuda/kernel_choice.hpp); beyond, it takes cuSOLVER's polar decomposition (gesvdp) in double, certified by its
/// residual. Where that fails, as it does for an f64 A of κ > 1e9, it takes the host after all, or QR iteration.
/// Throws NumericalBreakdown if QR iteration does not converge either, or A holds NaN or Inf.
template <class T, class D>
void small_svd(Context<D>& ctx, View<T, D> A, std::span<Real<T>> s, View<T, D> U, View<T, D> Vt);

}  // namespace quoin
