#pragma once

#include <cstdint>
#include <optional>
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

/// background.mp4, foreground.mp4, mask.mp4, comparison.mp4 and comparison.png in a folder, which appear at `finish`. Until then
/// the films are parts in a folder of their own, each complete once it is ended.
class VideoOutputs {
public:
    VideoOutputs(OutputDirectory& directory, std::string parts_folder, video::FrameFormat format, double rate);

    /// Appends a frame to the four films.
    void add(const SeparatedFrame& frame);
    /// Completes the part that the frames since the last one are in.
    void end_part();
    /// Joins the parts that are ended.
    void finish();

    /// All but the films (run_state.hpp).
    template <class State>
    void keep(State& state) {
        state(parts_);
        state(stride_);
        state(count_);
        std::size_t rows = picked_.size();
        state(rows);
        picked_.resize(rows);
        for (SeparatedFrame& row : picked_) {
            for (video::Image* image : {&row.input, &row.background, &row.foreground, &row.mask}) {
                state(image->format);
                state(image->pixels);
            }
        }
    }

private:
    struct Film {
        std::string name, path;  // of what `finish` writes
        video::FrameFormat format;
        std::optional<video::VideoWriter> part;
    };
    std::string part_path(const Film& film, Index part) const;

    std::string parts_folder_;
    double rate_;
    std::vector<Film> films_;  // background, foreground, mask, comparison
    Index parts_ = 0;
    std::string sheet_path_;
    std::vector<SeparatedFrame> picked_;  // every stride_-th frame, for the contact sheet
    Index stride_ = 1, count_ = 0;
};

}  // namespace quoin::cli
