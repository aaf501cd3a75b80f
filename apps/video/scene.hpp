#pragma once

#include <cstdint>
#include <span>

#include "video/frame.hpp"

namespace quoin::video {

/// What a fixed camera sees, made frame by frame, and pixel by pixel what of it moves. The same frames come in any order.
class Scene {
public:
    virtual ~Scene() = default;
    virtual const FrameFormat& format() const = 0;
    /// Frame number `j`, and into `mask` (width·height) 255 where something moves and 0 elsewhere.
    virtual void frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const = 0;
};

/// A random 64-bit word for each `key` (SplitMix64; Steele, Lea and Flood 2014).
inline std::uint64_t random_word(std::uint64_t key) {
    key += 0x9e3779b97f4a7c15;
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
    key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
    return key ^ (key >> 31);
}

/// Uniform in [0, 1).
inline double uniform(std::uint64_t key) { return static_cast<double>(random_word(key) >> 11) * 0x1p-53; }

/// Throws InvalidArgument for frames too small for a scene.
void check_scene_format(FrameFormat format);

}  // namespace quoin::video
