#include "video_outputs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "video/contact_sheet.hpp"

namespace quoin::cli {

namespace {

constexpr std::size_t most_rows = 5;  // of the contact sheet
const std::vector<std::string> titles{"input", "background", "foreground", "mask"};

/// Widest column of a comparison; wider frames are shrunk for it by a whole number.
constexpr Index widest_column = 960;

/// The means of f×f pixels; those at the right and the bottom that fill no square are left out.
video::Image shrink(const video::Image& image, Index f) {
    const video::FrameFormat& from = image.format;
    video::Image small{{from.width / f, from.height / f, from.channels}, {}};
    small.pixels.reserve(static_cast<std::size_t>(small.format.bytes()));
    for (Index y = 0; y < small.format.height; ++y) {
        for (Index x = 0; x < small.format.width; ++x) {
            for (Index c = 0; c < from.channels; ++c) {
                Index sum = f * f / 2;
                for (Index i = 0; i < f * f; ++i) {
                    const Index pixel = (y * f + i / f) * from.width + x * f + i % f;
                    sum += image.pixels[static_cast<std::size_t>(pixel * from.channels + c)];
                }
                small.pixels.push_back(static_cast<std::uint8_t>(sum / (f * f)));
            }
        }
    }
    return small;
}

/// The frame as it is compared: its pictures at most `widest_column` pixels wide.
SeparatedFrame for_comparison(const SeparatedFrame& frame) {
    const Index f = (frame.input.format.width + widest_column - 1) / widest_column;
    if (f <= 1 || frame.input.format.height < f) return frame;
    SeparatedFrame small;
    small.input = shrink(frame.input, f);
    small.background = shrink(frame.background, f);
    small.foreground = shrink(frame.foreground, f);
    small.mask = shrink(frame.mask, f);
    return small;
}

std::vector<video::FrameView> columns(const SeparatedFrame& frame) {
    std::vector<video::FrameView> views;
    for (const video::Image* image : {&frame.input, &frame.background, &frame.foreground, &frame.mask}) {
        views.push_back({image->format, image->pixels});
    }
    return views;
}

template <class T>
void set_levels(std::span<const T> values, video::Image& image) {
    std::transform(values.begin(), values.end(), image.pixels.begin(), [](T value) {
        return static_cast<std::uint8_t>(std::lround(255 * std::clamp(std::abs(static_cast<double>(value)), 0.0, 1.0)));
    });
}

}  // namespace

SeparatedFrame::SeparatedFrame(video::FrameFormat format) {
    const auto black = [](video::FrameFormat of) {
        return video::Image{of, std::vector<std::uint8_t>(static_cast<std::size_t>(of.bytes()))};
    };
    input = background = foreground = black(format);
    mask = black({format.width, format.height, 1});
}

template <class T>
void SeparatedFrame::set(std::span<const T> m, std::span<const T> l, std::span<const T> s) {
    set_levels(m, input);
    set_levels(l, background);
    set_levels(s, foreground);
}
template void SeparatedFrame::set<float>(std::span<const float>, std::span<const float>, std::span<const float>);
template void SeparatedFrame::set<double>(std::span<const double>, std::span<const double>, std::span<const double>);

video::Image comparison(const SeparatedFrame& frame) {
    return video::side_by_side(columns(for_comparison(frame)), titles);
}

VideoOutputs::VideoOutputs(OutputDirectory& directory, video::FrameFormat format, double rate)
    : background_(directory.file("background.mp4"), format, rate),
      foreground_(directory.file("foreground.mp4"), format, rate),
      mask_(directory.file("mask.mp4"), {format.width, format.height, 1}, rate),
      comparison_(directory.file("comparison.mp4"), comparison(SeparatedFrame(format)).format, rate),
      sheet_path_(directory.file("comparison.png")) {}

void VideoOutputs::add(const SeparatedFrame& frame) {
    background_.write(frame.background.pixels);
    foreground_.write(frame.foreground.pixels);
    mask_.write(frame.mask.pixels);
    SeparatedFrame compared = for_comparison(frame);
    comparison_.write(video::side_by_side(columns(compared), titles).pixels);
    if (count_++ % stride_ != 0) return;
    picked_.push_back(std::move(compared));
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
