#pragma once

#include <span>

#include "quoin/matrix.hpp"

namespace quoin {

/// A pair of particles i and j at the difference r of their positions, and the derivative of their force, δF_i = (α +
/// β r rᵀ)(δr_i − δr_j) = −δF_j.
struct Coupling {
    Index i, j;
    double alpha, beta, r[3];  ///< r: of d components
};

/// Vectors that `couple` takes at once: a row is one line of a cache.
inline constexpr Index couple_width = 8;

/// F_i += Δ, F_j −= Δ, Δ = α(X_i − X_j) + β r rᵀ(X_i − X_j) for each pair: the derivative of central forces times
/// `couple_width` vectors. X and F have d rows a particle, 1 <= d <= 3, and a row has the entries of all vectors. They
/// must not overlap. Runs on the calling thread, with the instruction set of the host's kernels.
void couple(std::span<const Coupling> pairs, int d, const double* X, double* F);

}  // namespace quoin
