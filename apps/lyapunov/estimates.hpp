#pragma once

#include "lyapunov/batch_sums.hpp"
#include "quoin/matrix.hpp"

namespace quoin {

/// What a finite step and rounding may add to λ_i = Σ log|r_ii| / T, in the order of the batches. Empty: nothing.
struct Resolution {
    static constexpr Index pieces = 16;
    Matrix<double> differences;    ///< p×pieces: λ_i with the step less λ_i with half of it, on pieces of one orbit
    std::vector<double> rounding;  ///< p: a bound of the error by rounding
};

/// Exponents, what follows from them, their errors and the convergence, of segments of time `tau` each. With `linear_growth`
/// intervals of exponents that may vanish include the bias log(K)/(Kτ) of vectors that grow linearly. All intervals include what `resolution`
/// tells of. Throws nothing.
void estimate(const BatchSums& batches, double tau, bool linear_growth, LyapunovSpectrum& result,
              const Resolution& resolution = {});

/// Whether the sum of all n exponents of `f` is the known one, to 0.001 Σ|λ_i| and the half widths of their intervals.
bool has_known_sum(const LyapunovSpectrum& f);

}  // namespace quoin
