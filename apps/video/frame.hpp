#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin::video {

/// Size of an 8-bit frame: rows from top to bottom without padding, channels interleaved.
struct FrameFormat {
    Index width = 0, height = 0;
    Index channels = 1;  ///< 1: grey, 3: red, green, blue; 0 is black and 255 is white
    Index bytes() const { return width * height * channels; }
    bool operator==(const FrameFormat&) const = default;
};

/// A ratio of two positive numbers.
struct Ratio {
    int num = 1, den = 1;
    bool operator==(const Ratio&) const = default;
};

/// When a frame is shown and for how long, in units that its source names. The first frame is shown at 0.
struct FrameTime {
    std::int64_t begin = 0, duration = 1;
};

/// Throws InvalidArgument where no picture of FFmpeg is of this format.
void check_format(const FrameFormat& format);
/// Throws InvalidArgument where a frame of this format has another number of bytes.
void check_frame(const FrameFormat& format, std::span<const std::uint8_t> pixels);

/// A frame that belongs to someone else.
struct FrameView {
    FrameFormat format;
    std::span<const std::uint8_t> pixels;
};

/// A frame that owns its pixels.
struct Image {
    FrameFormat format;
    std::vector<std::uint8_t> pixels;
};

}  // namespace quoin::video
