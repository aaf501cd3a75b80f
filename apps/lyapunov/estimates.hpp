#pragma once

#include "lyapunov/batch_sums.hpp"
#include "quoin/matrix.hpp"

namespace quoin {

/// The errors that a finite step and rounding may add to λ_i = Σ log|r_ii| / T, in the order of the batches. Empty:
/// none.
struct Resolution {
    static constexpr Index pieces = 16;
    Matrix<double> differences;    ///< p×pieces: λ_i with the step less λ_i with half of it, on pieces of one orbit
    std::vector<double> rounding;  ///< p: a bound of the error by rounding
};

/// Writes to `result` the exponents, the quantities that follow from them, their errors and the convergence, from
/// segments of time `tau` each. With `linear_growth`, intervals of exponents that may vanish include the bias
/// log(K)/(Kτ) of vectors that grow linearly. All intervals include the errors in `resolution`. Throws nothing.
void estimate(const BatchSums& batches, double tau, bool linear_growth, LyapunovSpectrum& result,
              const Resolution& resolution = {});

/// Whether the sum of all n exponents of `f` is the known one, to 0.001 Σ|λ_i| and the half widths of their intervals.
bool has_known_sum(const LyapunovSpectrum& f);

}  // namespace quoin
