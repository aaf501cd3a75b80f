#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "video/frame_reader.hpp"

namespace quoin::video {

/// The labels of a video's frames (`MaskScore`), one image a frame. They come from a folder of images, or from a folder
/// in the layout of ChangeDetection.net: `groundtruth/`, and if they exist `ROI.*` (frames are not scored where it is
/// black) and `temporalROI.txt` (first and last frame that are scored, counted from 1).
class GroundTruth {
public:
    /// Opens the labels of frames of `size` from number `start` on; images of another size are scaled to the nearest
    /// pixel. Throws UnreadableFile.
    GroundTruth(const std::string& folder, FrameFormat size, Index start);

    /// Reads the labels of the next frame; false if the folder has no more.
    bool next(std::span<std::uint8_t> labels);

private:
    std::optional<FrameReader> labels_;
    std::vector<std::uint8_t> region_;  // empty: everything
    Index frame_, first_ = 0, last_;
};

}  // namespace quoin::video
