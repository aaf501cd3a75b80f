#pragma once

#include "lyapunov/batch_sums.hpp"

namespace quoin {

/// Exponents, what follows from them, their errors and the convergence, of segments of time `tau` each. With `linear_growth`
/// intervals of exponents that may vanish include the bias log(K)/(Kτ) of vectors that grow linearly. Throws nothing.
void estimate(const BatchSums& batches, double tau, bool linear_growth, LyapunovSpectrum& result);

/// Whether the sum of all n exponents of `f` is the known one, to 0.001 Σ|λ_i| and the half widths of their intervals.
bool has_known_sum(const LyapunovSpectrum& f);

}  // namespace quoin
