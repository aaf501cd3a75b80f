#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "video/scene.hpp"

namespace quoin::video {

/// What robust PCA and background subtraction are measured with.
///
/// A textured background under light that drifts slowly, in strength and in direction (rank 3), sensor noise, and
/// walkers: ellipses with a texture of their own, brighter or darker than all of the background, which cross the frame at
/// their own speeds.
class SyntheticScene : public Scene {
public:
    /// Throws InvalidArgument for a frame smaller than 32×32.
    explicit SyntheticScene(FrameFormat format);

    const FrameFormat& format() const override { return format_; }
    void frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const override;

private:
    struct Walker {
        double x, y, half_width, half_height, speed, brightness;
    };
    FrameFormat format_;
    std::vector<float> background_;  // grey, in [0, 1]
    std::vector<Walker> walkers_;
};

}  // namespace quoin::video
