#pragma once

// Solutions with a triangular factor of any rank (docs/pivoting.md, "Least squares of any rank").

#include "algorithms/one_matrix/full_rank.hpp"

namespace quoin {

/// solution.X := R⁻¹X, or R⁻ᵀX for Op::Transpose (n²p flops). If R has no full rank: R⁺X or (Rᵀ)⁺X for an R of lower
/// rank, O(k³) flops; writes rank and dependent columns, and adds the parts of X outside of R's range to the residual
/// norms. `test` is that of R, k×k.
template <class T, class D>
void solve_of_any_rank(Context<D>& ctx, Op op, MatrixView<const T, D> R, const RankTest& test,
                       LeastSquares<T, D>& solution);

}  // namespace quoin
