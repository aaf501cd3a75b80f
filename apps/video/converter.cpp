#include "video/converter.hpp"

#include <fmt/format.h>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

#include "quoin/error.hpp"

namespace quoin::video {

av::Scaler Converter::make_scaler(const Source& source) const {
    av::Scaler scaler = av::own<av::Scaler>(sws_alloc_context());
    int filter = SWS_BILINEAR;
    if (format_.width < source.width || format_.height < source.height) filter = SWS_AREA;
    if (nearest_) filter = SWS_POINT;
    const auto set = [&](const char* option, Index value) { av_opt_set_int(scaler.get(), option, value, 0); };
    set("srcw", source.width);
    set("srch", source.height);
    set("src_format", source.format);
    set("src_range", source.range == AVCOL_RANGE_JPEG);
    set("dstw", format_.width);
    set("dsth", format_.height);
    set("dst_format", av::pixel_format(format_));
    set("dst_range", 1);
    set("threads", 0);
    set("sws_flags", filter | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP);
    if (sws_init_context(scaler.get(), nullptr, nullptr) < 0) {
        const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(source.format));
        throw InvalidArgument(fmt::format("FFmpeg cannot make frames of {} x {} of pictures of {} x {} in {}",
                                          format_.width, format_.height, source.width, source.height,
                                          name ? name : "no format"));
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
    if (expanded_ == nullptr) expanded_ = av::make_picture(AV_PIX_FMT_RGB32, picture.width, picture.height);
    const auto* palette = reinterpret_cast<const std::uint32_t*>(picture.data[1]);
    for (int i = 0; i < picture.height; ++i) {
        const std::uint8_t* from = picture.data[0] + Index{i} * picture.linesize[0];
        auto* to = reinterpret_cast<std::uint32_t*>(expanded_->data[0] + Index{i} * expanded_->linesize[0]);
        for (int j = 0; j < picture.width; ++j) to[j] = palette[from[j]];
    }
    return *expanded_;
}

const AVFrame& Converter::scale(const AVFrame& picture) {
    const Source source{picture.format, picture.width, picture.height, picture.color_range, picture.colorspace};
    if (scaler_ == nullptr || source != source_) {
        scaler_ = make_scaler(source);
        source_ = source;
    }
    if (scaled_ == nullptr) {
        scaled_ = av::make_picture(av::pixel_format(format_), static_cast<int>(format_.width),
                                   static_cast<int>(format_.height));
    }
    if (sws_scale_frame(scaler_.get(), scaled_.get(), &picture) < 0) av::out_of_memory();
    return *scaled_;
}

void Converter::convert(const AVFrame& picture, std::span<std::uint8_t> frame) {
    // swscale's grey of a palette is off by one
    const AVFrame& source = picture.format == AV_PIX_FMT_PAL8 ? expand_palette(picture) : picture;
    const bool as_it_is =
        source.format == av::pixel_format(format_) && source.width == format_.width && source.height == format_.height;
    const AVFrame& result = as_it_is ? source : scale(source);
    const int row_bytes = static_cast<int>(format_.width * format_.channels);
    av_image_copy_plane(frame.data(), row_bytes, result.data[0], result.linesize[0], row_bytes,
                        static_cast<int>(format_.height));
}

}  // namespace quoin::video
