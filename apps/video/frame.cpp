#include "video/frame.hpp"

#include <fmt/format.h>

extern "C" {
#include <libavutil/imgutils.h>
}

#include <limits>

#include "quoin/error.hpp"

namespace quoin::video {

void check_format(const FrameFormat& format) {
    constexpr Index largest = std::numeric_limits<int>::max();
    if (format.channels != 1 && format.channels != 3) {
        throw InvalidArgument(fmt::format("a frame has 1 or 3 channels, not {}", format.channels));
    }
    if (format.width < 1 || format.width > largest || format.height < 1 || format.height > largest ||
        av_image_check_size(static_cast<unsigned>(format.width), static_cast<unsigned>(format.height), 0, nullptr) <
            0) {
        throw InvalidArgument(fmt::format("no frame can be {} x {}", format.width, format.height));
    }
}

void check_frame(const FrameFormat& format, std::span<const std::uint8_t> pixels) {
    if (pixels.size() == static_cast<std::size_t>(format.bytes())) return;
    throw InvalidArgument(fmt::format("a frame of {} x {} x {} has {} bytes, not {}", format.width, format.height,
                                      format.channels, format.bytes(), pixels.size()));
}

}  // namespace quoin::video
