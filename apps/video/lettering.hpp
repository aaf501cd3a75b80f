#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "video/frame.hpp"

namespace quoin::video {

using Rgb = std::array<std::uint8_t, 3>;

/// Height of a line of letters, each dot `scale` pixels wide and high.
constexpr Index text_height(Index scale) { return 7 * scale; }
/// Width of a line of `letters` letters.
constexpr Index text_width(Index letters, Index scale) { return letters > 0 ? (6 * letters - 1) * scale : 0; }

/// Draws a line of letters into an RGB image, its upper left corner at (x, y): capitals, also for small letters; other
/// characters are blank. What lies outside the image is not drawn.
void draw_text(Image& image, Index x, Index y, std::string_view text, Index scale, Rgb color);

}  // namespace quoin::video
