#pragma once

// Solutions with a triangular factor of any rank (docs/pivoting.md, "Least squares of any rank").

#include "algorithms/one_matrix/full_rank.hpp"

namespace quoin {

/// solution.X := R⁻¹X, or R⁻ᵀX for Op::Transpose: k²p flops for a k×k R. If R has no full rank, takes the pseudoinverse
/// of an R of lower rank: O(k³) flops. Then writes rank and dependent columns, and adds the parts of X outside of the
/// range of R (Rᵀ for Op::Transpose) to the residual norms. `test` is the result of `test_rank` for R.
template <class T, class D>
void solve_of_any_rank(Context<D>& ctx, Op op, MatrixView<const T, D> R, const RankTest& test,
                       LeastSquares<T, D>& solution);

}  // namespace quoin
