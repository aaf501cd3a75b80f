#pragma once

// The decision whether a triangular factor has full rank.

#include <algorithm>
#include <span>

#include "primitives.hpp"
#include "quoin/least_squares.hpp"

namespace quoin {

/// Throws InvalidArgument unless `rcond` is −1 or from 0 to 1, and for mixed precision where it is not offered.
void require_options(const LeastSquaresOptions& solver, bool offers_mixed_precision = false);

/// The reciprocal condition, with columns of unit norm, that a matrix of full rank exceeds if rcond is −1.
template <class T>
constexpr double default_tolerance = 10 * Scalar<T>::u;

/// Returns the size of the rounding errors of R, k×k, relative to its columns, as a tolerance for the rank.
template <class T>
double rounding_of_r(Index k) {
    return static_cast<double>(std::max<Index>(10, k)) * Scalar<T>::u;
}

/// Whether σ_i > rcond σ₁ for all i of k singular values, by an estimate of κ₁. σ_k/σ₁ >= 1/(kκ₁), and an estimate is
/// rarely below κ₁/3 (Higham 1988).
inline bool has_full_rank(double condition, Index k, double rcond) {
    return 3.0 * static_cast<double>(k) * condition * rcond < 1;
}

/// The rank of a triangular factor R, k×k, as far as R shows it without pivots.
struct RankTest {
    bool is_full = true;
    /// The number of singular values above the tolerance, if rcond is not −1; otherwise −1 for a deficient R.
    Index rank = -1;
    double tolerance = 0;
};

/// Decides whether R has full rank, as LeastSquaresOptions::rcond says. Writes condition, rank and tolerance of
/// `solution`, and with `solver.singular_values` the singular values of R. If the matrix was perturbed,
/// `perturbed_condition` counts if it is larger. If R holds NaN or Inf: throws NumericalBreakdown if the matrix was
/// `checked` to be finite, else the rank counts as full, and condition is NaN.
///
/// Throws RankDeficient for an R without full rank, if `solver` refuses it. The message names the m×n matrix. R is its
/// factor, or its transpose's if m < n; column j of R is column order[j] of the matrix,
/// or j without `order`.
template <class T, class D>
RankTest test_rank(Context<D>& ctx, MatrixView<const T, D> R, Index m, Index n, const LeastSquaresOptions& solver,
                   LeastSquares<T, D>& solution, bool checked = true, double perturbed_condition = -1,
                   std::span<const Index> order = {});

}  // namespace quoin
