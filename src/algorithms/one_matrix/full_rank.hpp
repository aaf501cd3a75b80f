#pragma once

// The decision whether a triangular factor has full rank.

#include "primitives.hpp"

namespace quoin {

/// Returns the tolerance that `rcond` stands for: 10u for −1. Throws InvalidArgument unless it is −1 or from 0 to 1.
template <class T>
double rank_tolerance(double rcond);

/// Returns κ₁(R), R k×k. Throws RankDeficient if 1/κ₁(RD) <= rcond; the diagonal D scales the columns of R to unit
/// norm. If the matrix was perturbed, `perturbed_condition` counts if it is larger. If R holds NaN or Inf: throws
/// NumericalBreakdown if the matrix was `checked` to be finite, else returns NaN.
///
/// The message names the m×n matrix. R is its factor, or its transpose's if m < n.
template <class T, class D>
double require_full_rank(Context<D>& ctx, MatrixView<const T, D> R, Index m, Index n, double rcond, bool checked = true,
                         double perturbed_condition = -1);

}  // namespace quoin
