#include "video/scene.hpp"

#include <fmt/format.h>

#include "quoin/error.hpp"

namespace quoin::video {

void check_scene_format(FrameFormat format) {
    if (format.width < 32 || format.height < 32) {
        throw InvalidArgument(
            fmt::format("the synthetic scene needs frames of at least 32x32, not {}x{}", format.width, format.height));
    }
}

}  // namespace quoin::video
