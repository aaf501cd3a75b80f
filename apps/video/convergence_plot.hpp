#pragma once

#include <span>
#include <string>

#include "quoin/robust_pca.hpp"

namespace quoin::video {

/// The residual (logarithmic) and the rank over the iterations of a pursuit, one panel under the other, as an SVG file
/// that needs nothing else. `tolerance` is drawn as a line; 0: none. A residual that is zero, NaN or infinite breaks
/// the curve; where the iterations begin anew, as those of windows do, so does it.
std::string convergence_svg(std::span<const RobustPcaStep> steps, double tolerance = 0);

}  // namespace quoin::video
