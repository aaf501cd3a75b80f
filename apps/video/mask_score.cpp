#include "video/mask_score.hpp"

namespace quoin::video {

void MaskScore::add(std::span<const std::uint8_t> mask, std::span<const std::uint8_t> labels) {
    constexpr std::uint8_t background = 0, shadow = 50, foreground = 255;
    ++frames;
    for (std::size_t i = 0; i < mask.size(); ++i) {
        const bool found = mask[i] != 0;
        true_positives += found && labels[i] == foreground;
        false_negatives += !found && labels[i] == foreground;
        false_positives += found && (labels[i] == background || labels[i] == shadow);
    }
}

}  // namespace quoin::video
