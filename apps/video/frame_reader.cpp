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

bool has_color(const AVFrame& picture) {
    constexpr int rounding = 4;  // of YUV
    const FrameFormat format{picture.width, picture.height, 3};
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
          width(pending->width),
          height(pending->height),
          format(scaled_format(selection, selection.color || (selection.color_if_any && has_color(*pending)), width,
                               height)),
          converter(format, selection.nearest) {}

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
    int width, height;    // of every picture
    FrameFormat format;
    Converter converter;
    Index position = 0;
};

FrameReader::FrameReader(const std::string& path, FrameSelection selection)
    : impl_(std::make_unique<Impl>(path, selection)) {}
FrameReader::FrameReader(FrameReader&&) noexcept = default;
FrameReader::~FrameReader() = default;

const FrameFormat& FrameReader::format() const { return impl_->format; }
double FrameReader::rate() const { return impl_->source->rate(); }
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
    if (picture->width != r.width || picture->height != r.height) {
        throw UnreadableFile(r.source->path(), fmt::format("frame {} is {} x {}, and those before it are {} x {}",
                                                           r.selection.start + r.position, picture->width,
                                                           picture->height, r.width, r.height));
    }
    r.converter.convert(*picture, frame);
    ++r.position;
    return true;
}

}  // namespace quoin::video
