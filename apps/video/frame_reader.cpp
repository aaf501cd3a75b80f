#include "video/frame_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "quoin/error.hpp"
#include "video/converter.hpp"
#include "video/image_list.hpp"
#include "video/picture_source.hpp"

namespace quoin::video {
namespace {

void check(const FrameSelection& s) {
    const auto refuse = [](const char* name, Index value, const char* why) {
        throw InvalidArgument(fmt::format("{} = {} of the frames to read {}", name, value, why));
    };
    if (s.start < 0) refuse("start", s.start, "is negative");
    if (s.frames == 0 || s.frames < -1) refuse("frames", s.frames, "must be positive, or -1 for all");
    if (s.width < 0) refuse("width", s.width, "is negative");
    if (s.height < 0) refuse("height", s.height, "is negative");
}

std::unique_ptr<PictureSource> open_source(const std::string& path, bool (*stopped)()) {
    std::vector<std::string> images = list_images(path);
    if (images.empty() && names_image(path)) images = {path};
    return images.empty() ? open_video(path, stopped) : open_images(std::move(images));
}

/// Width and height of the picture once it is upright.
FrameFormat upright(const AVFrame& picture, Index channels = 1) {
    if (av::orientation_of(picture).transposed) return {picture.height, picture.width, channels};
    return {picture.width, picture.height, channels};
}

bool has_color(const AVFrame& picture) {
    constexpr int rounding = 4;  // of YUV
    const FrameFormat format = upright(picture, 3);
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(format.bytes()));
    Converter(format, true).convert(picture, pixels);
    for (std::size_t i = 0; i < pixels.size(); i += 3) {
        const auto [least, most] = std::minmax({pixels[i], pixels[i + 1], pixels[i + 2]});
        if (most - least > rounding) return true;
    }
    return false;
}

/// The size that a selection scales width × height to.
FrameFormat scaled_format(const FrameSelection& s, bool color, Index width, Index height) {
    const auto in_proportion = [](Index size, Index to, Index from) {
        return std::max<Index>(1, (2 * size * to + from) / (2 * from));
    };
    FrameFormat format{s.width, s.height, color ? 3 : 1};
    if (s.width == 0) format.width = s.height == 0 ? width : in_proportion(width, s.height, height);
    if (s.height == 0) format.height = s.width == 0 ? height : in_proportion(height, s.width, width);
    check_format(format);
    return format;
}

}  // namespace

struct FrameReader::Impl {
    Impl(const std::string& path, const FrameSelection& selection_)
        : selection((check(selection_), selection_)),
          source(open_source(path, selection.stopped)),
          pending(first_picture(path)),
          size(upright(*pending)),
          first_time(pending->pts),
          format(scaled_format(selection, selection.color || (selection.color_if_any && has_color(*pending)),
                               size.width, size.height)),
          pixel_aspect(aspect_of(*pending)),
          converter(format, selection.nearest) {}

    Ratio aspect_of(const AVFrame& picture) const {
        AVRational aspect = picture.sample_aspect_ratio;
        if (aspect.num <= 0 || aspect.den <= 0) aspect = {1, 1};
        if (av::orientation_of(picture).transposed) aspect = av_inv_q(aspect);
        // one size alone is rounded, and means the same proportions
        const bool stretched = selection.width > 0 && selection.height > 0;
        const Index widths = stretched ? size.width * format.height : 1,
                    heights = stretched ? size.height * format.width : 1;
        constexpr Index largest = 65535;  // in a stream of H.264
        Ratio reduced;
        av_reduce(&reduced.num, &reduced.den, aspect.num * widths, aspect.den * heights, largest);
        return reduced.num > 0 && reduced.den > 0 ? reduced : Ratio{};
    }

    av::Picture first_picture(const std::string& path) {
        for (Index skipped = 0;; ++skipped) {
            av::Picture picture = source->next();
            if (picture == nullptr) {
                throw InvalidArgument(fmt::format("start = {} is beyond the {} frames of {}{}{}", selection.start,
                                                  skipped, path, source->damage().empty() ? "" : ", where ",
                                                  source->damage()));
            }
            if (skipped == selection.start) return picture;
        }
    }

    FrameSelection selection;
    std::unique_ptr<PictureSource> source;
    av::Picture pending;  // decoded, not yet handed out
    FrameFormat size;     // of every picture, upright
    std::int64_t first_time;
    FrameFormat format;
    Ratio pixel_aspect;
    FrameTime time;
    Converter converter;
    Index position = 0;
};

FrameReader::FrameReader(const std::string& path, FrameSelection selection)
    : impl_(std::make_unique<Impl>(path, selection)) {}
FrameReader::FrameReader(FrameReader&&) noexcept = default;
FrameReader::~FrameReader() = default;

const FrameFormat& FrameReader::format() const { return impl_->format; }
double FrameReader::rate() const { return impl_->source->rate(); }
Ratio FrameReader::time_unit() const { return impl_->source->time_unit(); }
FrameTime FrameReader::time() const { return impl_->time; }
Ratio FrameReader::pixel_aspect() const { return impl_->pixel_aspect; }
Index FrameReader::position() const { return impl_->position; }
const std::string& FrameReader::damage() const { return impl_->source->damage(); }

Index FrameReader::frames_expected() const {
    const FrameSelection& selection = impl_->selection;
    const Index left = impl_->source->count() - selection.start;
    // a count that the first frame of the selection disproves is no count
    if (left <= 0) return -1;
    return selection.frames < 0 ? left : std::min(left, selection.frames);
}

bool FrameReader::next(std::span<std::uint8_t> frame) {
    Impl& r = *impl_;
    check_frame(r.format, frame);
    if (r.position == r.selection.frames) return false;
    const av::Picture picture = r.pending ? std::move(r.pending) : r.source->next();
    if (picture == nullptr) return false;
    if (const FrameFormat size = upright(*picture); size != r.size) {
        throw UnreadableFile(r.source->path(), fmt::format("frame {} is {} x {}, and those before it are {} x {}",
                                                           r.selection.start + r.position, size.width, size.height,
                                                           r.size.width, r.size.height));
    }
    r.converter.convert(*picture, frame);
    r.time = {picture->pts - r.first_time, av::duration_of(*picture)};
    ++r.position;
    return true;
}

}  // namespace quoin::video
