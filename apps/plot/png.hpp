#pragma once

#include <string>

namespace quoin::plot {

/// Whether this build has librsvg, and so `png`.
bool has_png();

/// Returns the picture of an SVG file as a PNG file, with `scale` pixels a unit. Throws InvalidArgument if the build
/// has no librsvg, and if librsvg refuses the SVG.
std::string png(const std::string& svg, double scale = 2);

}  // namespace quoin::plot
