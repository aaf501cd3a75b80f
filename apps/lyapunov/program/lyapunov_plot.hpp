#pragma once

#include <string>

#include "quoin/lyapunov.hpp"

namespace quoin::cli {

/// The exponents over the time they were averaged for, and their 95% intervals as bands, as an SVG file: all, or 64 evenly out of
/// them.
std::string lyapunov_convergence_svg(const LyapunovSpectrum& spectrum);

/// λ_i over i, and beneath it their sums Σ_{j<=i} λ_j, which the Kaplan-Yorke dimension reads.
std::string lyapunov_spectrum_svg(const LyapunovSpectrum& spectrum);

}  // namespace quoin::cli
