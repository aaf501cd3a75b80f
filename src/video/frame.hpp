#pragma once

#include "quoin/matrix.hpp"

namespace quoin::video {

/// Size of an 8-bit frame: rows from top to bottom without padding, channels interleaved.
struct FrameFormat {
    Index width = 0, height = 0;
    Index channels = 1;  ///< 1: grey, 3: red, green, blue; 0 is black and 255 is white
    Index bytes() const { return width * height * channels; }
    bool operator==(const FrameFormat&) const = default;
};

}  // namespace quoin::video
