#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "video/scene.hpp"

namespace quoin::video {

/// A street in grey, without noise: houses, a tree and a lamp under a sun that a cloud covers and uncovers in three
/// steps, and walkers and cars before them. The background is one of three pictures, so the matrix of the frames is one
/// of rank 3 plus one that is 0 where nothing moves: what robust PCA takes apart.
class StreetScene : public Scene {
public:
    /// One channel. Throws InvalidArgument for a frame smaller than 32×32.
    explicit StreetScene(FrameFormat format);

    const FrameFormat& format() const override { return format_; }
    void frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const override;

private:
    FrameFormat format_;
    std::array<std::vector<std::uint8_t>, 3> backgrounds_;  // in sun, in thin and in thick cloud
};

}  // namespace quoin::video
