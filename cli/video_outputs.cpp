#include "video_outputs.hpp"

#include <algorithm>

#include "video/contact_sheet.hpp"

namespace quoin::cli {

namespace {

constexpr std::size_t most_rows = 5;  // of the contact sheet
const std::vector<std::string> titles{"input", "background", "foreground", "mask"};

video::FrameView view(const video::Image& image) { return {image.format, image.pixels}; }

std::vector<video::FrameView> columns(const SeparatedFrame& frame) {
    return {view(frame.input), view(frame.background), view(frame.foreground), view(frame.mask)};
}

video::FrameFormat comparison_format(video::FrameFormat format) {
    const video::Image black{format, std::vector<std::uint8_t>(static_cast<std::size_t>(format.bytes()))};
    return video::side_by_side(std::vector<video::FrameView>(titles.size(), view(black)), titles).format;
}

}  // namespace

VideoOutputs::VideoOutputs(const OutputDirectory& directory, video::FrameFormat format, double rate)
    : background_(directory.file("background.mp4"), format, rate),
      foreground_(directory.file("foreground.mp4"), format, rate),
      mask_(directory.file("mask.mp4"), {format.width, format.height, 1}, rate),
      comparison_(directory.file("comparison.mp4"), comparison_format(format), rate),
      sheet_path_(directory.file("comparison.png")) {}

void VideoOutputs::add(const SeparatedFrame& frame) {
    background_.write(frame.background.pixels);
    foreground_.write(frame.foreground.pixels);
    mask_.write(frame.mask.pixels);
    comparison_.write(video::side_by_side(columns(frame), titles).pixels);
    if (count_++ % stride_ != 0) return;
    picked_.push_back(frame);
    if (picked_.size() <= most_rows) return;
    // one row too many: every second one goes, and from now on frames twice as far apart come
    for (std::size_t i = 0; 2 * i < picked_.size(); ++i) std::swap(picked_[i], picked_[2 * i]);
    picked_.resize((picked_.size() + 1) / 2);
    stride_ *= 2;
}

void VideoOutputs::finish() {
    std::vector<std::vector<video::FrameView>> rows;
    std::transform(picked_.begin(), picked_.end(), std::back_inserter(rows), columns);
    const video::Image sheet = video::contact_sheet(rows, titles);
    video::write_png(sheet_path_, sheet.format, sheet.pixels);
    for (video::VideoWriter* film : {&background_, &foreground_, &mask_, &comparison_}) film->finish();
}

}  // namespace quoin::cli
