#pragma once

#include <span>
#include <string>

#include "quoin/apps/robust_pca.hpp"

namespace quoin::video {

/// Returns a plot of the residual (logarithmic) and the rank over the iterations of a pursuit, one panel under the
/// other, as a self-contained SVG file. `tolerance` is drawn as a line; 0: none. The curve breaks at a residual that is
/// zero, NaN or infinite, and where the iterations begin again, as windows do.
std::string convergence_svg(std::span<const RobustPcaStep> steps, double tolerance = 0);

}  // namespace quoin::video
