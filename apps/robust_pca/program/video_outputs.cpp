#include "video_outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "video/contact_sheet.hpp"
#include "video/shrink.hpp"

namespace quoin::cli {

namespace {

constexpr std::size_t max_rows = 5;  // of the contact sheet
const std::vector<std::string> titles{"input", "background", "foreground", "mask"};

/// Widest column of a comparison; wider frames are shrunk for it by a whole number.
constexpr Index widest_column = 960;

std::vector<video::FrameView> columns(const SeparatedFrame& frame) {
    std::vector<video::FrameView> views;
    for (const video::Image* image : {&frame.input, &frame.background, &frame.foreground, &frame.mask}) {
        views.push_back({image->format, image->pixels});
    }
    return views;
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
void set_levels(std::type_identity_t<std::span<const T>> values, video::Image& image) {
    std::transform(values.begin(), values.end(), image.pixels.begin(), [](T value) {
        return static_cast<std::uint8_t>(255 * std::clamp(std::abs(static_cast<double>(value)), 0.0, 1.0) + 0.5);
    });
}
template void set_levels<float>(std::span<const float>, video::Image&);
template void set_levels<double>(std::span<const double>, video::Image&);

video::Image for_comparison(const video::Image& image) {
    const Index f = (image.format.width + widest_column - 1) / widest_column;
    return f <= 1 || image.format.height < f ? image : video::shrink(image, f);
}

SeparatedFrame for_comparison(const SeparatedFrame& frame) {
    return {for_comparison(frame.input), for_comparison(frame.background), for_comparison(frame.foreground),
            for_comparison(frame.mask)};
}

video::Image comparison(const SeparatedFrame& frame, video::Image memory) {
    return video::contact_sheet({columns(for_comparison(frame))}, titles, /*outlined=*/true, std::move(memory));
}

VideoOutputs::VideoOutputs(OutputDirectory& directory, std::string parts_folder, video::FrameFormat format, double rate,
                           video::Ratio unit, video::Ratio pixel_aspect)
    : parts_folder_(std::move(parts_folder)),
      rate_(rate),
      shape_{unit, {}, pixel_aspect},
      sheet_path_(directory.file("comparison.png")) {
    const auto add = [&](const char* name, const video::FrameFormat& of) {
        films_.push_back({name, directory.file(fmt::format("{}.mp4", name)), of, std::nullopt});
    };
    add("background", format);
    add("foreground", format);
    add("mask", {format.width, format.height, 1});
    add("comparison", comparison(SeparatedFrame(format)).format);
}

std::string VideoOutputs::part_path(const Film& film, Index part) const {
    return fmt::format("{}/{}-{:05}.mp4", parts_folder_, film.name, part + 1);
}

void VideoOutputs::write(Film& film, const video::Image& image) {
    if (!film.part) film.part.emplace(part_path(film, parts_), film.format, rate_);
    film.part->write(image.pixels);
}

void VideoOutputs::end(Film& film) {
    if (!film.part) return;
    film.part->finish();
    film.part.reset();
}

void VideoOutputs::add(const SeparatedFrame& frame, video::FrameTime time) {
    add_time(time);
    add_background(frame.background);
    add_foreground(frame.foreground);
    add_mask(frame.mask);
    compare(for_comparison(frame));
}

void VideoOutputs::compare(SeparatedFrame compared) {
    write(films_[3], video::contact_sheet({columns(compared)}, titles, /*outlined=*/true));
    if (count_++ % stride_ != 0) return;
    picked_.push_back(std::move(compared));
    if (picked_.size() <= max_rows) return;
    // one row too many: every second one goes, and from now on frames twice as far apart come
    for (std::size_t i = 0; 2 * i < picked_.size(); ++i) std::swap(picked_[i], picked_[2 * i]);
    picked_.resize((picked_.size() + 1) / 2);
    stride_ *= 2;
}

void VideoOutputs::end_part() {
    for (Film& film : films_) end(film);
    ++parts_;
}

void VideoOutputs::finish() {
    std::vector<std::vector<video::FrameView>> rows;
    std::transform(picked_.begin(), picked_.end(), std::back_inserter(rows), columns);
    const video::Image sheet = video::contact_sheet(rows, titles, /*outlined=*/true);
    video::write_png(sheet_path_, sheet.format, sheet.pixels);
    for (const Film& film : films_) {
        std::vector<std::string> parts;
        for (Index part = 0; part < parts_; ++part) parts.push_back(part_path(film, part));
        video::join_videos(parts, film.path, rate_, shape_);
    }
}

}  // namespace quoin::cli
