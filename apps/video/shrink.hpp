#pragma once

#include "video/frame.hpp"

namespace quoin::video {

/// The means of f×f pixels, rounded; those at the right and the bottom that fill no square are left out.
Image shrink(const Image& image, Index f);

}  // namespace quoin::video
