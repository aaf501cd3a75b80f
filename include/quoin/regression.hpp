#pragma once

#include <span>
#include <string>
#include <vector>

#include "quoin/streaming.hpp"

namespace quoin {

/// Choices for a regression.
///
///     regression<double>(ctx, A.view(), b.view(), {.intercept = true, .weights = w});
struct RegressionOptions {
    bool intercept = false;                ///< the first unknown is the factor of a column of ones
    double ridge = 0;                      ///< λ >= 0 of the penalty λ‖x‖²; the intercept is not penalised
    std::span<const double> weights = {};  ///< w_i >= 0 of the observations, finite; empty: 1
};

/// Estimates and statistics of a linear regression b_j ≈ Ax_j with n unknowns and p right-hand sides. If there is an
/// intercept, it is row 0 of every n×p matrix.
///
/// A coefficient whose column depends on earlier columns is left out of the model, as by R's `lm`: its entries are NaN.
/// So are statistics without degrees of freedom. With a ridge the estimates are biased: t, p and F are NaN.
struct Regression {
    Index observations = 0;         ///< rows whose weight is not 0
    Index rank = 0;                 ///< coefficients in the model, r
    double degrees_of_freedom = 0;  ///< observations − r; with a ridge observations − trace A(AᵀA + λI)⁻¹Aᵀ
    bool intercept = false;         ///< whether R² and F compare with the mean of b, not with 0
    double ridge = 0;               ///< λ
    double condition = 0;           ///< estimate of κ₁(R)
    std::vector<Index> dependent;   ///< unknowns that are left out, ascending

    Matrix<double> coefficients;     ///< x, n×p
    Matrix<double> standard_errors;  ///< s_j √((AᵀA)⁻¹)_ii
    Matrix<double> t_values;         ///< x / standard error
    Matrix<double> p_values;         ///< P(|t| is as large) if the coefficient is 0: Student's t distribution
    Matrix<double> error_bounds;     ///< first-order bounds on the rounding errors of x

    std::vector<double> residual_norms;  ///< √Σᵢ wᵢ(b − Ax)ᵢ² of each right-hand side
    std::vector<double> residual_standard_errors, r_squared, adjusted_r_squared, f_values;  ///< of each, too
    std::vector<double> f_p_values;  ///< P(F is as large) if all coefficients but the intercept are 0

    Matrix<double> R;  ///< r×r: RᵀR = AᵀWA + λI for the columns in the model
};

/// Solves min Σᵢ wᵢ(Ax − b)ᵢ² + λ‖x‖² for A m×n and every column b of B, m×p, and returns the statistics of the fit.
///
/// Method: Householder QR of √W [1 A B] = Q [R C; 0 E] as by `StreamingR`; everything else is computed from this
/// triangle, never from AᵀA. A ridge adds a QR of [R; √λ I] (Golub 1965). (AᵀA)⁻¹ is R⁻¹R⁻ᵀ. The rows of [C; E] after
/// the first give the sum of squares about the mean. p values are incomplete beta functions. The rank is decided as by
/// `least_squares` with rcond = −1; docs/regression.md has the mathematics.
///
/// x solves exactly a problem whose columns differ by ‖Δa_j‖ = O(nu)‖a_j‖. `error_bounds` takes ε = r u for that:
///
///     |Δx_i| <= ε (‖eᵢᵀR⁻¹‖ (‖b‖ + Σ_j ‖a_j‖|x_j|) + Σ_j |(AᵀA)⁻¹_ij| ‖a_j‖ ‖b − Ax‖).
///
/// 2m(n + p)² flops and O((n + p)³) more on the host; a copy of A and B, two with weights or an intercept. Blocks until
/// done. Throws InvalidArgument for shapes that do not fit, negative or NaN weights and a negative λ; NonFiniteEntry
/// for NaN or Inf in A or B.
///
///     const Regression fit = regression<double>(ctx, A.view(), b.view(), {.intercept = true});
///     fmt::print("{}", summary(fit, {"(intercept)", "x"}));
template <class T, class D>
Regression regression(Context<D>& ctx, Input<T, D> A, View<const T, D> B, const RegressionOptions& options = {});

/// Returns the statistics for all rows √wᵢ [1 aᵢ bᵢ] that a stream was given (without the 1 if there is no intercept).
/// The weights only tell how many observations count. O((n + p)³) flops on the host.
template <class T, class D>
Regression regression(Context<D>& ctx, const StreamingR<T, D>& rows, const RegressionOptions& options = {});

/// Returns the leverages of rows of A, the diagonal of the hat matrix √W A(AᵀWA + λI)⁻¹Aᵀ√W: the squared norms of the
/// rows of √W A R⁻¹. A is without the column of ones, and may be some of the rows of the fit. mr² flops, relative error
/// O(r u)κ(R).
///
/// Throws InvalidArgument for an A with another number of columns, and for wrong weights.
template <class T, class D>
std::vector<double> leverages(Context<D>& ctx, const Regression& fit, Input<T, D> A,
                              std::span<const double> weights = {});

/// Returns a table of the coefficients of one right-hand side with standard errors, t and p values, and lines with the
/// residual standard error, R², F and the dependent columns. `names`: one for each unknown, or none, for x0, x1, ….
std::string summary(const Regression& fit, const std::vector<std::string>& names = {}, Index right_hand_side = 0);

/// Solves min ‖AX − C‖ subject to BX = D for each column, as LAPACK's gglse. A is m×n, C m×q, B p×n of rank p <= n, D
/// p×q. If several X minimise it, returns the X of least norm.
///
/// Null-space method (Lawson and Hanson 1974, chapter 20): Bᵀ = Q [R; 0], A Q = [A₁ A₂], X = Q [R⁻ᵀD; Y] with Y from
/// min ‖A₂Y − (C − A₁R⁻ᵀD)‖ by `least_squares`, to whose problem residual norms, rank and condition belong. 4mnp +
/// 2m(n − p)² flops. Blocks until done.
///
/// Throws RankDeficient for dependent constraints, which it names, and InvalidArgument for shapes that do not fit.
template <class T, class D>
LeastSquares<T, D> constrained_least_squares(Context<D>& ctx, Input<T, D> A, View<const T, D> C, Input<T, D> B,
                                             View<const T, D> constraint_values, const LeastSquaresOptions& solver = {},
                                             Options options = {});

}  // namespace quoin
