#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "quoin/qr.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// Choices for least squares.
///
///     least_squares(ctx, A.view(), B.view(), {.rcond = 1e-8});
///     least_squares(ctx, A.view(), B.view(), {.refuse_deficient = true});
struct LeastSquaresOptions {
    /// Decides the rank. From 0 to 1: singular values σ_i <= rcond σ₁ of A count as zero, as in NumPy and in LAPACK's
    /// gelsd; 0 accepts every A whose triangular factor is not exactly singular. −1: the rank is full if 1/κ₁ of
    /// this factor, with its columns scaled to unit norm, is above 10u. The units of the unknowns then do not matter,
    /// or the units of the equations for m < n.
    double rcond = -1;
    bool refuse_deficient = false;  ///< throw RankDeficient for an A without full rank
    bool singular_values = false;   ///< compute the singular values of A from R: 8k³/3 flops
    /// Factor A in f32 and refine X to f64's accuracy; see `least_squares`. Of one matrix in f64 with m >= n.
    bool mixed_precision = false;
};

/// Result of LeastSquaresOptions::mixed_precision.
struct Refinement {
    Index steps = 0;  ///< of refinement
    /// Why f64 solved the problem after all, in words; empty if the refinement converged, or was not asked for.
    std::string fell_back;
};

/// Solution of min ‖AX − B‖, its residuals, the rank and a condition estimate. k = min(m, n).
template <class T, class D = Host>
struct LeastSquares {
    Matrix<T, D> X;                       ///< n×p
    std::vector<Real<T>> residual_norms;  ///< p values ‖A x_j − b_j‖₂; exact zeros for rank m
    double condition = 0;                 ///< estimate of κ₁ of the triangular factor
    Index rank = 0;                       ///< of A, decided by `tolerance`; 0 if A holds NaN or Inf
    double tolerance = 0;                 ///< see LeastSquaresOptions::rcond
    /// k − rank columns of A (rows for m < n), in order, that depend on the other ones; none if the rank is full.
    std::vector<Index> dependent;
    std::vector<Real<T>> singular_values;  ///< k values, descending, if the options ask for them
    Report report;                         ///< of the factorization: of A, or of Aᵀ for m < n
    Matrix<T, D> R;         ///< min(m, n) rows and columns: the triangular factor of 2^-exponent A, or of Aᵀ
    int exponent = 0;       ///< not 0 only where R of A itself overflows or loses digits to underflow
    Refinement refinement;  ///< in mixed precision
};

/// Solves min ‖Ax − b‖₂ for an A of any shape and rank. If several x minimise it, returns the x of least ‖x‖₂.
///
/// A is m×n, B m×p, p >= 0. A row-major A and a column-major one give the same bits. Method (Golub 1965): for m >= n, A
/// = QR and R X = (QᵀB)(0:n, :). The residual norms are the column norms of the other rows of QᵀB, or of B − Q₁Q₁ᵀB if
/// the thin Q₁ is held explicitly. For m < n, Aᵀ = QR and X = Q [R⁻ᵀB; 0]. If A has no full rank, R⁻¹ is the
/// pseudoinverse of an R of lower rank, from a complete orthogonal decomposition of R (Hanson and Lawson 1969), or
/// from the SVD of R if its pivots do not show the rank or `rcond` drops more than rounding errors. docs/pivoting.md
/// has the mathematics.
///
/// Each x_j solves exactly a problem with A + ΔA_j and b_j + Δb_j, ‖ΔA_j‖_F = O(ku)‖A‖_F and ‖Δb_j‖ = O(ku)‖b_j‖, k =
/// min(m, n) (Higham 2002, chapters 20 and 21). For deficient A, ΔA_j also takes A to the rank that is returned; with
/// rcond = −1 the norm of that part of a column is O(√k tolerance) times the column's. 2 max(m, n) k² + 4mnp flops;
/// O(k³) more for deficient A; copies of A and B. Blocks until done. On a GPU A, B and X are in its memory; the call
/// blocks until residual norms and condition are known, and X is ready for work enqueued on the context.
///
/// If R or the norm of a column of B overflows, or R loses digits to underflow, it solves 2^-e A X = 2^-e B, which has
/// the same X. Throws RankDeficient, which names the dependent columns, for a deficient A that is refused;
/// InvalidArgument on shapes that do not fit and for any other rcond; and NonFiniteEntry for NaN or Inf in A or B.
///
/// With `mixed_precision` A is factored in f32, and every step of refinement with A in f64 divides the error of X by
/// about 1/(κ₁u), for the u of f32 and the κ₁ of R with columns of unit norm (docs/algorithms.md, section 10). X is
/// returned only with its certificate, by which the bound above holds with 30√n u for O(ku). Otherwise f64 solves the
/// problem, and `refinement` has the reason: a step that divides the error by less than 4, an A without full rank in
/// f32, or norms of columns beyond 2^±400. `R`, `condition` and `report` of a refined X are f32's; `report.seconds` is
/// the time of the whole call. 4mnp flops a step; a copy of A in f32. It pays for large n and few right-hand sides.
///
/// Throws InvalidArgument for `mixed_precision` with f32, m < n, `singular_values` or `verify`.
///
///     auto s = least_squares(ctx, A.view(), B.view());
///     // s.X, s.residual_norms, s.rank, s.condition
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, InputView<T, D> A, View<const T, D> B,
                                 const LeastSquaresOptions& solver = {}, Options options = {});
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, MatrixView<const T, D> A, View<const T, D> B,
                                 const LeastSquaresOptions& solver = {}, Options options = {}) {
    return least_squares<T, D>(ctx, InputView<T, D>(A), B, solver, options);
}
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, MatrixView<T, D> A, View<const T, D> B,
                                 const LeastSquaresOptions& solver = {}, Options options = {}) {
    return least_squares<T, D>(ctx, InputView<T, D>(A), B, solver, options);
}
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, RowMajorView<const T, D> A, View<const T, D> B,
                                 const LeastSquaresOptions& solver = {}, Options options = {}) {
    return least_squares<T, D>(ctx, InputView<T, D>(A), B, solver, options);
}
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const Matrix<T, D>& A, const Matrix<T, D>& B,
                                 const LeastSquaresOptions& solver = {}, Options options = {}) {
    return least_squares<T, D>(ctx, InputView<T, D>(A.view()), B.view(), solver, options);
}

/// Solves with an existing factorization of A (m >= n), with or without pivoting: 4mnp + n²p flops. If a limit of
/// `Pivoting` stopped the factorization, its rank is the most that the solution has.
///
/// Throws InvalidArgument for m < n and for a factorization with QForm::None, and NumericalBreakdown if R overflows.
template <class T, class D>
LeastSquares<T, D> least_squares(Context<D>& ctx, const QR<T, D>& factorization,
                                 std::type_identity_t<MatrixView<const T, D>> B,
                                 const LeastSquaresOptions& solver = {});

/// Estimates κ₁(R) for an n×n upper triangular R in host memory (Hager 1984, Higham 1988): a lower bound, rarely below
/// κ₁/3. cuda.hpp has a version for GPUs.
///
/// Computed in double as LAPACK's trcon does, O(n²) flops and n² numbers of workspace; it does not read the lower
/// triangle. Returns infinity if a diagonal entry is zero or κ₁ overflows, NaN if R holds NaN or Inf, 1 for n = 0.
/// Throws InvalidArgument if R is not square.
template <class T>
double condition_estimate(Context<Host>& ctx, MatrixView<const T, Host> R);

}  // namespace quoin
