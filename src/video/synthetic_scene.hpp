#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "video/frame.hpp"

namespace quoin::video {

/// A scene before a fixed camera, made frame by frame, whose moving objects are known pixel by pixel.
///
/// A textured background under light that drifts slowly, in strength and in direction (rank 3), sensor noise, and
/// walkers: ellipses with a texture of their own, brighter or darker than all of the background, which cross the frame at
/// their own speeds. The same arguments give the same frames, in any order.
class SyntheticScene {
public:
    /// Throws InvalidArgument for a frame smaller than 32×32.
    explicit SyntheticScene(FrameFormat format);

    const FrameFormat& format() const { return format_; }
    /// Frame number `j`, and into `mask` (width·height) 255 where a walker is and 0 elsewhere.
    void frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const;

private:
    struct Walker {
        double x, y, half_width, half_height, speed, brightness;
    };
    FrameFormat format_;
    std::vector<float> background_;  // grey, in [0, 1]
    std::vector<Walker> walkers_;
};

}  // namespace quoin::video
