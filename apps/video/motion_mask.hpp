#pragma once

#include <cstdint>
#include <span>

#include "video/frame.hpp"

namespace quoin::video {

/// 255 where something moves, 0 elsewhere, from the difference r = m − l of one frame and its background and
/// the noise σ of each entry (`noise_levels`):
///
///     z² = Σ over channels of (r / max(σ, threshold / 2))²
///
/// The majority of 5×5 pixels decides twice: on z > 1.5 and on z > 3, or for three channels on what noise exceeds as
/// rarely. A pixel next to three or more that are below the first bound must also have z above half of what the largest
/// of its 3×3 pixels exceeds 1.5 by: an edge lies where its picture, which optics and compression blur, has half of its
/// height. What is above the first bound and connected to something above the second is foreground, with the holes in
/// it that cover at most a hundredth of the frame.
template <class T>
void set_motion_mask(const FrameFormat& format, std::span<const T> r, std::span<const float> noise, double threshold,
                     std::span<std::uint8_t> mask);

/// The difference from the background that starts a mask in a pixel of noise σ, in one channel alone: 3 max(σ,
/// threshold / 2) of grey.
double starting_difference(const FrameFormat& format, double noise, double threshold);

/// 255 where |s| is above the threshold in one of the channels, 0 elsewhere.
template <class T>
void set_raw_mask(const FrameFormat& format, std::span<const T> s, double threshold, std::span<std::uint8_t> mask);

}  // namespace quoin::video
