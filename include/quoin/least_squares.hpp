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

/// Full-rank least squares: m >= n gives the minimiser of ‖Ax − b‖₂, m < n the solution of Ax = b of least ‖x‖₂.
///
/// A is m×n, row-major or column-major with the same bits, B m×p, any p >= 0. Method (Golub 1965): for m >= n, A = QR, R X = (QᵀB)(0:n, :), and the residual norms are
/// the column norms of the rest of QᵀB (of B − Q₁Q₁ᵀB where the thin Q₁ is held explicitly); for m < n, Aᵀ = QR and
/// X = Q [R⁻ᵀB; 0]. Each x_j solves exactly a problem with
/// A + ΔA_j and b_j + Δb_j, ‖ΔA_j‖_F = O(ku)‖A‖_F and ‖Δb_j‖ = O(ku)‖b_j‖, k = min(m, n) (Higham 2002, chapters 20 and 21).
/// 2 max(m, n) k² + 4mnp flops; copies of A and B. Blocks until done; on a GPU, where A, B and X lie in its memory, until
/// the numbers are known, X being ready for work that is enqueued on the context.
///
/// Throws RankDeficient when 1/κ₁ of the triangular factor (estimated,
/// its columns scaled to unit norm, so that the units of the unknowns do not matter) is at or below `rcond`: that is the
/// relative distance to the nearest singular matrix. `rcond` is from 0, which accepts all that is not exactly singular, to 1;
/// -1 takes 10u, which rounding the entries of A alone may cover.
/// Where R or the norm of a column of B overflows, or R loses digits to underflow, 2^-e A X = 2^-e B is solved, of the same X.
/// Throws InvalidArgument on shapes that do not fit and for any other rcond, and NonFiniteEntry for NaN or Inf in A or B.
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

/// The same, on a factorization of A (m >= n) that already exists: 4mnp + n²p flops.
///
/// Throws InvalidArgument for m < n and for a factorization with QForm::None, and NumericalBreakdown where R overflows.
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const QR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B, double rcond = -1);

/// Estimate of κ₁(R) for an n×n upper triangular R in host memory (Hager 1984, Higham 1988): a lower bound, rarely below
/// κ₁/3. cuda.hpp has it for a GPU's memory.
///
/// Computed in double as LAPACK's trcon does, O(n²) flops and n² numbers of workspace; the lower triangle is not looked at.
/// Infinity where a diagonal entry is zero or κ₁ overflows, NaN where R holds NaN or Inf, 1 for n = 0.
/// Throws InvalidArgument if R is not square.
template <class T>
double condition_estimate(Context<Host>& ctx, MatrixView<const T, Host> R);

}  // namespace quoin
