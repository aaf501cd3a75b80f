#pragma once

#include <cstdint>
#include <span>

#include "video/frame.hpp"

namespace quoin::video {

/// A scene before a fixed camera, made frame by frame, with a mask of the pixels that move. Frames do not depend on the
/// order of the calls.
class Scene {
public:
    virtual ~Scene() = default;
    virtual const FrameFormat& format() const = 0;
    /// Draws frame number `j`, and writes 255 to `mask` (width·height) where something moves and 0 elsewhere.
    virtual void frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const = 0;
};

/// Returns a random 64-bit word for each `key` (SplitMix64; Steele, Lea and Flood 2014).
inline std::uint64_t random_word(std::uint64_t key) {
    key += 0x9e3779b97f4a7c15;
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
    key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
    return key ^ (key >> 31);
}

/// Returns a number that is uniform in [0, 1).
inline double uniform(std::uint64_t key) { return static_cast<double>(random_word(key) >> 11) * 0x1p-53; }

/// Throws InvalidArgument for frames too small for a scene.
void check_scene_format(FrameFormat format);

}  // namespace quoin::video
