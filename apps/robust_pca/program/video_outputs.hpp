#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "output_files.hpp"
#include "video/frame.hpp"
#include "video/video_writer.hpp"

namespace quoin::cli {

/// One frame of `quoin rpca`, and what became of it.
struct SeparatedFrame {
    video::Image input, background, foreground;
    video::Image mask;  ///< grey, 0 or 255

    SeparatedFrame() = default;
    /// Black pictures.
    explicit SeparatedFrame(video::FrameFormat format);
    /// The pictures of a column of M, L and S, whose entries are in [0, 1].
    template <class T>
    void set(std::span<const T> m, std::span<const T> l, std::span<const T> s);
};

/// Input, background, foreground and mask side by side under their names, at most 960 pixels wide each.
video::Image comparison(const SeparatedFrame& frame);

/// background.mp4, foreground.mp4, mask.mp4, comparison.mp4 and comparison.png in a folder, which appear at `finish`.
class VideoOutputs {
public:
    VideoOutputs(OutputDirectory& directory, video::FrameFormat format, double rate);

    /// Appends a frame to the four films.
    void add(const SeparatedFrame& frame);
    void finish();

private:
    video::VideoWriter background_, foreground_, mask_, comparison_;
    std::string sheet_path_;
    std::vector<SeparatedFrame> picked_;  // every stride_-th frame, for the contact sheet
    Index stride_ = 1, count_ = 0;
};

}  // namespace quoin::cli
