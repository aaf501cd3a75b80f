#pragma once

#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
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
    SeparatedFrame(video::Image i, video::Image b, video::Image f, video::Image m)
        : input(std::move(i)), background(std::move(b)), foreground(std::move(f)), mask(std::move(m)) {}
    /// Black pictures.
    explicit SeparatedFrame(video::FrameFormat format);
};
/// The picture of a column of M or L, or of |S|, whose entries are in [0, 1].
template <class T>
void set_levels(std::type_identity_t<std::span<const T>> values, video::Image& image);

/// The image, or where it is wider than 960 pixels a smaller one.
video::Image for_comparison(const video::Image& image);
SeparatedFrame for_comparison(const SeparatedFrame& frame);
/// Input, background, foreground and mask side by side under their names, at most 960 pixels wide each; the mask's edge
/// is drawn over the input. A comparison that is needed no more may give its memory.
video::Image comparison(const SeparatedFrame& frame, video::Image memory = {});

/// background.mp4, foreground.mp4, mask.mp4, comparison.mp4 and comparison.png in a folder, which appear at `finish`.
/// Until then the films are parts in a folder of their own, each complete once it is ended.
class VideoOutputs {
public:
    /// `unit`: seconds, of the frames' times. `pixel_aspect`: width over height of a pixel.
    VideoOutputs(OutputDirectory& directory, std::string parts_folder, video::FrameFormat format, double rate,
                 video::Ratio unit, video::Ratio pixel_aspect);

    /// The films of a window can be written one after the other, so that one large encoder is open at a time: x264
    /// holds tens of frames. Appends a frame to one of them, or to comparison.mp4 and the contact sheet.
    void add_background(const video::Image& image) { write(films_[0], image); }
    void add_foreground(const video::Image& image) { write(films_[1], image); }
    void add_mask(const video::Image& image) { write(films_[2], image); }
    /// The pictures as `for_comparison` makes them.
    void compare(SeparatedFrame compared);
    /// When the next frame is shown.
    void add_time(video::FrameTime time) { shape_.times.push_back(time); }
    /// Appends a frame to all of them.
    void add(const SeparatedFrame& frame, video::FrameTime time);
    /// Completes what there is of the part in one of them.
    void end_background() { end(films_[0]); }
    void end_foreground() { end(films_[1]); }
    void end_mask() { end(films_[2]); }
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
        state(shape_.times);
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
    void write(Film& film, const video::Image& image);
    static void end(Film& film);
    std::string part_path(const Film& film, Index part) const;

    std::string parts_folder_;
    double rate_;
    video::FilmShape shape_;
    std::vector<Film> films_;  // background, foreground, mask, comparison
    Index parts_ = 0;
    std::string sheet_path_;
    std::vector<SeparatedFrame> picked_;  // every stride_-th frame, for the contact sheet
    Index stride_ = 1, count_ = 0;
};

}  // namespace quoin::cli
