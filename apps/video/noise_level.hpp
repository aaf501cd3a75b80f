#pragma once

#include <functional>
#include <span>
#include <vector>

#include "quoin/matrix.hpp"
#include "video/frame.hpp"

namespace quoin::video {

/// The noise of each entry of a frame, from the residuals R = M − L of some frames, a column each:
///
///     σ = q₄₀(range of 6 frames in turn) / 2.26,   its square averaged over 5×5 pixels
///
/// 2.26 is that quantile of the range of 6 normal numbers. What passes a pixel in up to a half of the frames, as cars
/// on a street do, leaves 40% of the ranges as they are. Leaves and water, which come and go within 6 frames, are in
/// all of them: they raise their own threshold. `residuals(rows, R)` writes some rows of R.
template <class T>
std::vector<float> noise_levels(const FrameFormat& format, Index frames,
                                const std::function<void(Range rows, MatrixView<T> R)>& residuals);

/// smoothed := the noise of each entry with its square averaged over 5×5 pixels, as `noise_levels` has it.
void smooth_noise(const FrameFormat& format, std::span<const float> noise, std::span<float> smoothed);

}  // namespace quoin::video
