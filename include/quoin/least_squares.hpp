#pragma once

#include <type_traits>
#include <vector>

#include "quoin/qr.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// Solution of min ‖AX − B‖, its residuals and a condition estimate.
template <class T, class D = Host>
struct LeastSquares {
    Matrix<T, D> X;                       ///< n×p
    std::vector<Real<T>> residual_norms;  ///< p values ‖A x_j − b_j‖₂; exact zeros for m <= n
    double condition = 0;                 ///< estimate of κ₁ of the triangular factor
    Report report;                        ///< of the factorization: of A, or of Aᵀ for m < n
    Matrix<T, D> R;    ///< min(m, n) rows and columns: the triangular factor of 2^-exponent A, or of Aᵀ
    int exponent = 0;  ///< not 0 only where R of A itself overflows or loses digits to underflow
};

/// Solves a full-rank least-squares problem: for m >= n the minimiser of ‖Ax − b‖₂, for m < n the solution of Ax = b of
/// least ‖x‖₂.
///
/// A is m×n, B m×p, p >= 0. A row-major A and a column-major one give the same bits. Method (Golub 1965): for m >= n, A
/// = QR and R X = (QᵀB)(0:n, :). The residual norms are the column norms of the other rows of QᵀB, or of B − Q₁Q₁ᵀB if
/// the thin Q₁ is held explicitly. For m < n, Aᵀ = QR and X = Q [R⁻ᵀB; 0]. Each x_j solves exactly a problem with A +
/// ΔA_j and b_j + Δb_j, ‖ΔA_j‖_F = O(ku)‖A‖_F and ‖Δb_j‖ = O(ku)‖b_j‖, k = min(m, n) (Higham 2002, chapters 20 and 21).
/// 2 max(m, n) k² + 4mnp flops; copies of A and B. Blocks until done. On a GPU A, B and X are in its memory; the call
/// blocks until residual norms and condition are known, and X is ready for work enqueued on the context.
///
/// Throws RankDeficient if 1/κ₁ of the triangular factor is at or below `rcond`. 1/κ₁ is estimated with columns scaled
/// to unit norm, so the units of the unknowns do not matter. It is the relative distance to the nearest singular
/// matrix. `rcond` is from 0, which accepts every matrix that is not exactly singular, to 1. -1 stands for 10u, a
/// distance that rounding the entries of A alone may cover. If R or the norm of a column of B overflows, or R loses
/// digits to underflow, it solves 2^-e A X = 2^-e B, which has the same X. Throws InvalidArgument on shapes that do not
/// fit and for any other rcond, and NonFiniteEntry for NaN or Inf in A or B.
///
///     auto s = least_squares(ctx, A.view(), B.view());
///     // s.X, s.residual_norms, s.condition
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, InputView<T, D> A, View<const T, D> B, double rcond = -1,
                                 Options options = {});
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, MatrixView<const T, D> A, View<const T, D> B, double rcond = -1,
                                 Options options = {}) {
    return least_squares<T, D>(ctx, InputView<T, D>(A), B, rcond, options);
}
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, MatrixView<T, D> A, View<const T, D> B, double rcond = -1,
                                 Options options = {}) {
    return least_squares<T, D>(ctx, InputView<T, D>(A), B, rcond, options);
}
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, RowMajorView<const T, D> A, View<const T, D> B, double rcond = -1,
                                 Options options = {}) {
    return least_squares<T, D>(ctx, InputView<T, D>(A), B, rcond, options);
}

/// Solves with an existing factorization of A (m >= n): 4mnp + n²p flops.
///
/// Throws InvalidArgument for m < n and for a factorization with QForm::None, and NumericalBreakdown if R overflows.
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const QR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond = -1);

/// Estimates κ₁(R) for an n×n upper triangular R in host memory (Hager 1984, Higham 1988): a lower bound, rarely below
/// κ₁/3. cuda.hpp has a version for GPUs.
///
/// Computed in double as LAPACK's trcon does, O(n²) flops and n² numbers of workspace; it does not read the lower
/// triangle. Returns infinity if a diagonal entry is zero or κ₁ overflows, NaN if R holds NaN or Inf, 1 for n = 0.
/// Throws InvalidArgument if R is not square.
template <class T>
double condition_estimate(Context<Host>& ctx, MatrixView<const T, Host> R);

}  // namespace quoin
