#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "video/scene.hpp"

namespace quoin::video {

/// Troubles that make the masks of a scene hard to find.
struct SceneTroubles {
    bool noise = false;     ///< three times the noise: its standard deviation is 7.7 grey levels
    bool leaves = false;    ///< two trees whose leaves sway
    bool light = false;     ///< a cloud takes a fifth of the light within three frames, and gives it back
    bool standing = false;  ///< a walker comes, stands still for 40 frames and goes
};

/// A scene for measuring robust PCA and background subtraction.
///
/// A textured background under light that drifts slowly, in strength and in direction (rank 3), sensor noise, and
/// walkers: ellipses with a texture of their own, brighter or darker than all of the background, which cross the frame
/// at their own speeds. The troubles come in addition, and each comes again after 150 frames. Leaves that sway are
/// background.
class SyntheticScene : public Scene {
public:
    /// Throws InvalidArgument for a frame smaller than 32×32.
    explicit SyntheticScene(FrameFormat format, SceneTroubles troubles = {});

    const FrameFormat& format() const override { return format_; }
    void frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const override;

private:
    struct Walker {
        double x, y, half_width, half_height, speed, brightness;
    };
    /// Returns the leaf at pixel (x, y) at time t, in [0, 1]; none outside the trees.
    std::optional<double> leaf(double x, double y, double t) const;

    FrameFormat format_;
    SceneTroubles troubles_;
    std::vector<float> background_;  // grey, in [0, 1]
    std::vector<Walker> walkers_;
};

}  // namespace quoin::video
