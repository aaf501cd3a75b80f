#include "video/stream_writer.hpp"

#include <unistd.h>

#include <cerrno>

#include "quoin/error.hpp"
#include "video/av.hpp"

namespace quoin::video {

struct StreamWriter::Impl {
    Impl(int descriptor_, FrameFormat format_, Ratio unit_, Ratio pixel_aspect)
        : descriptor(descriptor_), format((check_format(format_), format_)), unit(av::rational(unit_)) {
        av::silence();
        const auto send = [](void* self, auto* data, int bytes) { return static_cast<Impl*>(self)->send(data, bytes); };
        io = av::make_io(this, nullptr, send, nullptr);
        io->direct = 1;  // a frame is sent from where it is
        AVFormatContext* allocated = nullptr;
        avformat_alloc_output_context2(&allocated, nullptr, "nut", nullptr);
        muxer = av::own<av::Muxer>(allocated);
        muxer->pb = io.get();
        AVStream* stream = avformat_new_stream(muxer.get(), nullptr);
        if (stream == nullptr) av::out_of_memory();
        stream->time_base = unit;
        stream->sample_aspect_ratio = stream->codecpar->sample_aspect_ratio = av::rational(pixel_aspect);
        stream->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
        stream->codecpar->codec_id = AV_CODEC_ID_RAWVIDEO;
        stream->codecpar->format = av::pixel_format(format);
        stream->codecpar->codec_tag = avcodec_pix_fmt_to_codec_tag(av::pixel_format(format));
        stream->codecpar->width = static_cast<int>(format.width);
        stream->codecpar->height = static_cast<int>(format.height);
        check(avformat_write_header(muxer.get(), nullptr));
        packet = av::own<av::Packet>(av_packet_alloc());
    }

    int send(const std::uint8_t* data, int bytes) {
        for (int sent = 0; sent < bytes;) {
            const ssize_t n = ::write(descriptor, data + sent, static_cast<std::size_t>(bytes - sent));
            if (n < 0 && errno != EINTR) return AVERROR(errno);
            if (n > 0) sent += static_cast<int>(n);
        }
        return bytes;
    }

    void check(int error) const {
        if (error == AVERROR(ENOMEM)) av::out_of_memory();
        if (error >= 0) error = muxer->pb->error;
        if (error < 0) throw UnwritableFile("the stream", av::reason(error));
    }

    void write(std::span<const std::uint8_t> frame, FrameTime time) {
        check_frame(format, frame);
        packet->data = const_cast<std::uint8_t*>(frame.data());  // only read, and no longer than av_write_frame runs
        packet->size = static_cast<int>(frame.size());
        packet->pts = packet->dts = av_rescale_q(time.begin, unit, muxer->streams[0]->time_base);
        packet->duration = av_rescale_q(time.duration, unit, muxer->streams[0]->time_base);
        packet->flags |= AV_PKT_FLAG_KEY;
        const int error = av_write_frame(muxer.get(), packet.get());
        av_packet_unref(packet.get());
        avio_flush(muxer->pb);
        check(error);
    }

    int descriptor;
    FrameFormat format;
    AVRational unit;
    av::Io io;
    av::Muxer muxer;
    av::Packet packet;
};

StreamWriter::StreamWriter(int descriptor, FrameFormat format, Ratio unit, Ratio pixel_aspect)
    : impl_(std::make_unique<Impl>(descriptor, format, unit, pixel_aspect)) {}
StreamWriter::~StreamWriter() = default;
void StreamWriter::write(std::span<const std::uint8_t> frame, FrameTime time) { impl_->write(frame, time); }

}  // namespace quoin::video
