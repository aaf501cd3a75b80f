#pragma once

#include <functional>
#include <span>
#include <vector>

#include "quoin/matrix.hpp"
#include "video/frame.hpp"

namespace quoin::video {

/// The noise of each entry of a frame, from the residuals R = M − L of some frames, a column each:
///
///     σ = max(median|r| / Φ⁻¹(3/4), q₉₀|r_t − r_{t−1}| / (√2 Φ⁻¹(0.95))),   its square averaged over 5×5 pixels
///
/// Both are the standard deviation where r is normal. What crosses a pixel changes it when it comes and when it goes, and
/// leaves both quantiles as they are; leaves and water change it again and again, which the second one shows: they raise
/// their own threshold. `residuals(rows, R)` writes some rows of them.
template <class T>
std::vector<float> noise_levels(const FrameFormat& format, Index frames,
                                const std::function<void(Range rows, MatrixView<T> R)>& residuals);

/// smoothed := the noise of each entry with its square averaged over 5×5 pixels, as `noise_levels` has it.
void smooth_noise(const FrameFormat& format, std::span<const float> noise, std::span<float> smoothed);

}  // namespace quoin::video
