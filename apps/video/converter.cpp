#include "video/converter.hpp"

#include <fmt/format.h>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

#include <utility>

#include "quoin/error.hpp"

namespace quoin::video {

namespace {

/// Copies a picture upright, pixel by pixel of `channels` bytes.
template <Index channels>
void turn(const AVFrame& picture, av::Orientation orientation, const FrameFormat& upright, std::uint8_t* to) {
    // steps of the stored picture to the right and down in the upright one
    Index right = channels, down = picture.linesize[0];
    if (orientation.transposed) std::swap(right, down);
    const std::uint8_t* first = picture.data[0];
    if (orientation.mirrors_x) first += right * (upright.width - 1), right = -right;
    if (orientation.mirrors_y) first += down * (upright.height - 1), down = -down;
    for (Index y = 0; y < upright.height; ++y) {
        for (Index x = 0; x < upright.width; ++x) {
            for (Index c = 0; c < channels; ++c) *to++ = first[y * down + x * right + c];
        }
    }
}

}  // namespace

FrameFormat Converter::stored_format(bool transposed) const {
    return transposed ? FrameFormat{format_.height, format_.width, format_.channels} : format_;
}

av::Scaler Converter::make_scaler(const Source& source) const {
    const FrameFormat to = stored_format(source.transposed);
    av::Scaler scaler = av::own<av::Scaler>(sws_alloc_context());
    int filter = SWS_BILINEAR;
    if (to.width < source.width || to.height < source.height) filter = SWS_AREA;
    if (nearest_) filter = SWS_POINT;
    const auto set = [&](const char* option, Index value) { av_opt_set_int(scaler.get(), option, value, 0); };
    set("srcw", source.width);
    set("srch", source.height);
    set("src_format", source.format);
    set("src_range", source.range == AVCOL_RANGE_JPEG);
    set("dstw", to.width);
    set("dsth", to.height);
    set("dst_format", av::pixel_format(format_));
    set("dst_range", 1);
    set("threads", 0);
    set("sws_flags", filter | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP);
    if (sws_init_context(scaler.get(), nullptr, nullptr) < 0) {
        const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(source.format));
        throw InvalidArgument(fmt::format("FFmpeg cannot make frames of {} x {} of pictures of {} x {} in {}", to.width,
                                          to.height, source.width, source.height, name ? name : "no format"));
    }
    const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(source.format));
    if (format_.channels == 3 && !(descriptor->flags & AV_PIX_FMT_FLAG_RGB)) {
        int space = source.space;
        if (space == AVCOL_SPC_UNSPECIFIED) space = source.height >= 720 ? AVCOL_SPC_BT709 : AVCOL_SPC_SMPTE170M;
        sws_setColorspaceDetails(scaler.get(), sws_getCoefficients(space), source.range == AVCOL_RANGE_JPEG,
                                 sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    }
    return scaler;
}

const AVFrame& Converter::expand_palette(const AVFrame& picture) {
    if (expanded_ == nullptr || expanded_->width != picture.width)
        expanded_ = av::make_picture(AV_PIX_FMT_RGB32, picture.width, picture.height);
    const auto* palette = reinterpret_cast<const std::uint32_t*>(picture.data[1]);
    for (int i = 0; i < picture.height; ++i) {
        const std::uint8_t* from = picture.data[0] + Index{i} * picture.linesize[0];
        auto* to = reinterpret_cast<std::uint32_t*>(expanded_->data[0] + Index{i} * expanded_->linesize[0]);
        for (int j = 0; j < picture.width; ++j) to[j] = palette[from[j]];
    }
    return *expanded_;
}

const AVFrame& Converter::scale(const AVFrame& picture, bool transposed) {
    const Source source{picture.format, picture.width,       picture.height,
                        transposed,     picture.color_range, picture.colorspace};
    if (scaler_ == nullptr || source != source_) {
        const FrameFormat to = stored_format(transposed);
        scaler_ = make_scaler(source);
        source_ = source;
        scaled_ = av::make_picture(av::pixel_format(to), static_cast<int>(to.width), static_cast<int>(to.height));
    }
    if (sws_scale_frame(scaler_.get(), scaled_.get(), &picture) < 0) av::out_of_memory();
    return *scaled_;
}

void Converter::convert(const AVFrame& picture, std::span<std::uint8_t> frame) {
    // swscale's grey of a palette is off by one
    const AVFrame& source = picture.format == AV_PIX_FMT_PAL8 ? expand_palette(picture) : picture;
    const av::Orientation orientation = av::orientation_of(picture);
    const FrameFormat stored = stored_format(orientation.transposed);
    const bool as_it_is =
        source.format == av::pixel_format(format_) && source.width == stored.width && source.height == stored.height;
    const AVFrame& result = as_it_is ? source : scale(source, orientation.transposed);
    if (orientation != av::Orientation()) {
        format_.channels == 3 ? turn<3>(result, orientation, format_, frame.data())
                              : turn<1>(result, orientation, format_, frame.data());
        return;
    }
    const int row_bytes = static_cast<int>(format_.width * format_.channels);
    av_image_copy_plane(frame.data(), row_bytes, result.data[0], result.linesize[0], row_bytes,
                        static_cast<int>(format_.height));
}

}  // namespace quoin::video
