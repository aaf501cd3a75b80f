#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "quoin/least_squares.hpp"
#include "wide_products.hpp"

/// The law of least squares, in the units of checks.hpp.
///
/// Householder QR and a triangular solve give an x̂ that minimises ‖(A + ΔA)x − (b + Δb)‖ with ‖Δa_j‖ ≤ (c +
/// 1)·k·u·‖a_j‖ for every column and ‖Δb‖ ≤ c·k·u·‖b‖ (Higham 2002, Theorem 20.3; the solve adds k·u·|R|, Theorem 8.5),
/// k the number of reflectors. Hence, with r̂ = b − Ax̂ and the size s = ‖b‖ + Σ_j ‖a_j‖|x̂_j| of the terms that cancel
/// in it,
///
///     |a_jᵀ r̂| ≤ 2c·k·u·‖a_j‖(s + ‖r̂‖),      | ρ − ‖r̂‖ | ≤ 2c·k·u·s   for the residual norm ρ that is returned.
///
/// No unit contains κ or m, and none changes when a column is scaled.
namespace quoin::test {

inline constexpr double least_squares_law = 2 * law;

template <class T>
struct LeastSquaresErrors {
    double gradient = 0;       ///< max_j |a_jᵀ r̂| in units of k·u·‖a_j‖(s + ‖r̂‖)
    double residual = 0;       ///< ‖r̂‖ in units of k·u·s: for consistent systems
    double residual_norm = 0;  ///< |ρ − ‖r̂‖| in units of k·u·s
};

/// The worst over all right-hand sides; NaN wins.
template <class T>
LeastSquaresErrors<T> least_squares_errors(MatrixView<const T> A, MatrixView<const T> B, MatrixView<const T> X,
                                           const std::vector<T>& residual_norms) {
    using W = Wide<T>;
    const Index m = A.rows, n = A.cols;
    const W unit = std::max<Index>(1, std::min(m, n)) * W(unit_roundoff<T>);
    const auto raise = [](double& worst, W measured, W allowed) {
        const double error = measured == 0 ? 0 : static_cast<double>(measured / allowed);
        if (!(error <= worst)) worst = error;
    };
    const WideMatrix<W> wide_A = widened(A), wide_B = widened(B);
    std::vector<W> lengths(n);
    for (Index j = 0; j < n; ++j) lengths[j] = norm(wide_A, j);
    WideMatrix<W> r = wide_B, gradient(n, B.cols);
    subtract_product<W, T>(r, transposed<T>(A).view(), X);
    subtract_product(gradient, wide_A.view(), std::as_const(r).view());
    LeastSquaresErrors<T> errors;
    for (Index c = 0; c < B.cols; ++c) {
        W s = norm(wide_B, c);
        for (Index j = 0; j < n; ++j) s += lengths[j] * std::abs(W(X(j, c)));
        const W norm_of_r = norm(r, c);
        for (Index j = 0; j < n; ++j)
            raise(errors.gradient, std::abs(gradient(j, c)), unit * lengths[j] * (s + norm_of_r));
        raise(errors.residual, norm_of_r, unit * s);
        raise(errors.residual_norm, std::abs(W(residual_norms[c]) - norm_of_r), unit * s);
    }
    return errors;
}

template <class T>
void expect_least_squares_law(MatrixView<const T> A, MatrixView<const T> B, const LeastSquares<T>& solution) {
    ASSERT_EQ(solution.X.rows(), A.cols);
    ASSERT_EQ(solution.X.cols(), B.cols);
    ASSERT_EQ(solution.residual_norms.size(), static_cast<std::size_t>(B.cols));
    EXPECT_TRUE(is_finite<T>(solution.X.view()));
    const auto errors = least_squares_errors<T>(A, B, solution.X.view(), solution.residual_norms);
    EXPECT_LE(errors.gradient, least_squares_law) << "Aᵀ(b − Ax) = 0";
    EXPECT_LE(errors.residual_norm, least_squares_law) << "ρ = ‖b − Ax‖";
}

}  // namespace quoin::test
