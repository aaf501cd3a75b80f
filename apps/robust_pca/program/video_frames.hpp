#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rpca.hpp"
#include "video/frame_reader.hpp"
#include "video/ground_truth.hpp"
#include "video/scene.hpp"

namespace quoin::cli {

/// The frames that `quoin rpca` is given, from a video, from images or made, with the labels to score them by if any.
class VideoFrames {
public:
    /// Throws what FrameReader, GroundTruth and the scenes throw.
    explicit VideoFrames(const RpcaArguments& arguments);

    const std::string& name() const { return name_; }
    const video::FrameFormat& format() const { return scene_ ? scene_->format() : reader_->format(); }
    double rate() const { return scene_ ? 25 : reader_->rate(); }
    /// Seconds, for `time`.
    video::Ratio time_unit() const { return scene_ ? video::Ratio{1, 25} : reader_->time_unit(); }
    /// When the last frame is shown, from the first one on.
    video::FrameTime time() const { return scene_ ? video::FrameTime{position_ - 1, 1} : reader_->time(); }
    /// Width over height of a pixel.
    video::Ratio pixel_aspect() const { return scene_ ? video::Ratio() : reader_->pixel_aspect(); }
    /// -1 where the input does not say.
    Index expected() const { return scene_ ? frames_ : reader_->frames_expected(); }
    Index position() const { return position_; }
    /// Why reading ended early, or empty.
    std::string damage() const { return scene_ ? std::string() : reader_->damage(); }
    bool has_labels() const { return scene_ || truth_; }

    /// The next frame; false at the end. `labels` (width·height) becomes its labels, or empty where there are none.
    bool next(std::span<std::uint8_t> pixels, std::vector<std::uint8_t>& labels);

private:
    std::string name_;
    Index frames_ = 0, start_ = 0, position_ = 0;
    std::string scene_folder_;
    std::optional<video::FrameReader> reader_;
    std::unique_ptr<video::Scene> scene_;
    std::optional<video::GroundTruth> truth_;
};

}  // namespace quoin::cli
