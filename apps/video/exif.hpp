#pragma once

#include <string_view>

namespace quoin::video {

/// The orientation in the EXIF data of an image file (JPEG, PNG, WebP, TIFF), from 1 to 8; 1, upright, if it has none.
int exif_orientation(std::string_view file);

}  // namespace quoin::video
