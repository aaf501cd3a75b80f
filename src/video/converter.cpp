#include "video/converter.hpp"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

namespace quoin::video {

av::Scaler Converter::make_scaler(const Source& source) const {
    av::Scaler scaler = av::own<av::Scaler>(sws_alloc_context());
    const bool shrinks = format_.width < source.width || format_.height < source.height;
    const auto set = [&](const char* option, Index value) { av_opt_set_int(scaler.get(), option, value, 0); };
    set("srcw", source.width);
    set("srch", source.height);
    set("src_format", source.format);
    set("src_range", source.range == AVCOL_RANGE_JPEG);
    set("dstw", format_.width);
    set("dsth", format_.height);
    set("dst_format", av::pixel_format(format_));
    set("dst_range", 1);
    set("sws_flags", (nearest_  ? SWS_POINT
                      : shrinks ? SWS_AREA
                                : SWS_BILINEAR) |
                         SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP);
    if (sws_init_context(scaler.get(), nullptr, nullptr) < 0) av::out_of_memory();
    const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(source.format));
    if (format_.channels == 3 && !(descriptor->flags & AV_PIX_FMT_FLAG_RGB)) {
        const int space = source.space != AVCOL_SPC_UNSPECIFIED ? source.space
                          : source.height >= 720                ? AVCOL_SPC_BT709
                                                                : AVCOL_SPC_SMPTE170M;
        sws_setColorspaceDetails(scaler.get(), sws_getCoefficients(space), source.range == AVCOL_RANGE_JPEG,
                                 sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    }
    return scaler;
}

void Converter::convert(const AVFrame& picture, std::span<std::uint8_t> frame) {
    const AVFrame* result = &picture;
    const int width = static_cast<int>(format_.width), height = static_cast<int>(format_.height);
    if (picture.format != av::pixel_format(format_) || picture.width != width || picture.height != height) {
        const Source source{picture.format, picture.width, picture.height, picture.color_range, picture.colorspace};
        if (scaler_ == nullptr || source != source_) {
            scaler_ = make_scaler(source);
            source_ = source;
        }
        if (converted_ == nullptr) converted_ = av::make_picture(av::pixel_format(format_), width, height);
        sws_scale(scaler_.get(), picture.data, picture.linesize, 0, picture.height, converted_->data,
                  converted_->linesize);
        result = converted_.get();
    }
    const int row_bytes = static_cast<int>(format_.width * format_.channels);
    av_image_copy_plane(frame.data(), row_bytes, result->data[0], result->linesize[0], row_bytes, height);
}

}  // namespace quoin::video
