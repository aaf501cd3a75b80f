#pragma once

#include <cstdint>
#include <span>

#include "quoin/matrix.hpp"

namespace quoin::video {

/// Labels of a ground truth, as ChangeDetection.net gives them: 0 is background and 50 a shadow, which counts as
/// background; 255 is foreground; 85 (outside the region of interest), 170 (unknown) and anything else are not scored.
struct MaskScore {
    Index true_positives = 0, false_positives = 0, false_negatives = 0;
    Index frames = 0;

    /// Counts one frame: `mask` (not 0: foreground) against `labels`, pixel by pixel.
    void add(std::span<const std::uint8_t> mask, std::span<const std::uint8_t> labels);

    /// Share of the mask's foreground that is foreground; NaN if the mask has none.
    double precision() const { return ratio(true_positives, true_positives + false_positives); }
    /// Share of the foreground that the mask has; NaN if there is none.
    double recall() const { return ratio(true_positives, true_positives + false_negatives); }
    /// 2PR / (P + R).
    double f() const { return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives); }

private:
    static double ratio(Index a, Index b) { return static_cast<double>(a) / static_cast<double>(b); }
};

}  // namespace quoin::video
