#pragma once

#include <string>

#include "quoin/apps/lyapunov_series.hpp"

namespace quoin::cli {

/// The exponents over the time they were averaged for, and their 95% intervals as bands, as an SVG file: all, or 64
/// evenly out of them.
std::string lyapunov_convergence_svg(const LyapunovSpectrum& spectrum);

/// λ_i over i, and beneath it their sums Σ_{j<=i} λ_j, which the Kaplan-Yorke dimension reads.
std::string lyapunov_spectrum_svg(const LyapunovSpectrum& spectrum);

/// The mean log-distance of neighbours over time, and the line whose slope is the largest exponent.
std::string series_divergence_svg(const SeriesDivergence& divergence);

/// Throws if no such picture can be written: neither .svg nor .png, no librsvg, no folder.
void check_plot(const std::string& path);

/// Writes `svg` to `path`, as a picture of its kind.
void write_plot(const std::string& path, const std::string& svg);

/// The value, the error and the half width of each exponent, a row each: exponents.npy.
Matrix<double> table_of(const std::vector<Estimate>& exponents);

}  // namespace quoin::cli
