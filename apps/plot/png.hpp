#pragma once

#include <string>

namespace quoin::plot {

/// Whether `png` is in this build, which has librsvg then.
bool has_png();

/// The PNG file of an SVG file's picture, `scale` pixels a unit. Throws InvalidArgument where the build has no librsvg, and
/// where it refuses the SVG.
std::string png(const std::string& svg, double scale = 2);

}  // namespace quoin::plot
