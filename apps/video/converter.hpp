#pragma once

#include <cstdint>
#include <span>

#include "video/av.hpp"
#include "video/frame.hpp"

namespace quoin::video {

/// Converts decoded pictures to 8-bit frames of one format.
class Converter {
public:
    Converter(FrameFormat format, bool nearest) : format_(format), nearest_(nearest) {}
    /// Converts a picture. All pictures, upright, must have one size; they may differ in pixel format, range, colour
    /// space and orientation in the file.
    void convert(const AVFrame& picture, std::span<std::uint8_t> frame);

private:
    struct Source {
        int format = AV_PIX_FMT_NONE, width = 0, height = 0;
        bool transposed = false;
        AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
        AVColorSpace space = AVCOL_SPC_UNSPECIFIED;
        bool operator==(const Source&) const = default;
    };
    /// Returns the format of the frames as they are stored.
    FrameFormat stored_format(bool transposed) const;
    av::Scaler make_scaler(const Source& source) const;
    const AVFrame& expand_palette(const AVFrame& picture);
    const AVFrame& scale(const AVFrame& picture, bool transposed);

    FrameFormat format_;
    bool nearest_;
    Source source_;
    av::Scaler scaler_;
    av::Picture expanded_;
    av::Picture scaled_;  // FFmpeg writes whole vectors, beyond the ends of rows without padding
};

}  // namespace quoin::video
