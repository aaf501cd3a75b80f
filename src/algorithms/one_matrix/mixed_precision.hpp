#pragma once

// Least squares in f64 from QR in f32 (docs/algorithms.md, section 10, "Mixed precision").

#include <optional>

#include "primitives.hpp"
#include "quoin/least_squares.hpp"

namespace quoin {

/// Throws InvalidArgument if least_squares cannot solve an m×n problem in mixed precision, as `solver` asks.
void require_mixed_precision(ScalarKind scalar, Index m, Index n, const LeastSquaresOptions& solver,
                             const Options& options);

/// Solves min ‖AX − B‖ of full rank, m >= n: R is the triangular factor of A in f32, and each step of refinement
/// adds R⁻¹R⁻ᵀAᵀ(B − AX) to X. Returns nothing, with the reason in `refinement`, unless every column of X has its
/// certificate. 2mn² flops in f32, 4mnp + 2n²p for each step; a copy of A in f32. Waits.
template <class D>
std::optional<LeastSquares<double, D>> solve_in_mixed_precision(Context<D>& ctx, Input<double, D> A,
                                                                View<const double, D> B,
                                                                const LeastSquaresOptions& solver, Options options,
                                                                Refinement& refinement);

}  // namespace quoin
