#include "video/video_writer.hpp"

#include <fmt/format.h>

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/opt.h>
}

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "io/atomic_file.hpp"
#include "quoin/error.hpp"
#include "video/av.hpp"
#include "video/input_file.hpp"

namespace quoin::video {
namespace {

/// Puts what FFmpeg writes into an AtomicFile. An exception must not pass through FFmpeg: it waits for `rethrow`.
class Output {
public:
    explicit Output(const std::string& path) : path_(path), file_(path) {
        // `data` points to const in FFmpeg 7 and later
        const auto write = [](void* self, auto* data, int bytes) {
            return static_cast<Output*>(self)->write(data, bytes);
        };
        io_ = av::make_io(this, nullptr, write, seek);
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    AVIOContext* io() { return io_.get(); }
    io::AtomicFile& file() { return file_; }

    /// The end of every call that may have written: throws for a failure of the file, then for one of FFmpeg's.
    void check(int error) {
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        if (error == AVERROR(ENOMEM)) av::out_of_memory();
        if (error < 0) throw UnwritableFile(path_, av::reason(error));
    }

private:
    int write(const std::uint8_t* data, int bytes) {
        if (failure_) return AVERROR(EIO);
        try {
            file_.write_at(position_, data, static_cast<std::size_t>(bytes));
        } catch (...) {
            failure_ = std::current_exception();
            return AVERROR(EIO);
        }
        position_ += bytes;
        size_ = std::max(size_, position_);
        return bytes;
    }

    static std::int64_t seek(void* self, std::int64_t offset, int whence) {
        Output& output = *static_cast<Output*>(self);
        if (whence == AVSEEK_SIZE) return output.size_;
        if ((whence & ~AVSEEK_FORCE) != SEEK_SET || offset < 0) return AVERROR(EINVAL);
        return output.position_ = offset;
    }

    std::string path_;
    io::AtomicFile file_;
    av::Io io_;
    Index position_ = 0, size_ = 0;
    std::exception_ptr failure_;
};

/// An .mp4 of one stream, with its index first.
class Mp4 {
public:
    /// `time_base`: unit of the times of its packets, in seconds.
    Mp4(const std::string& path, AVRational time_base) : output_(path) {
        AVFormatContext* context = nullptr;
        avformat_alloc_output_context2(&context, nullptr, "mp4", nullptr);
        muxer_ = av::own<av::Muxer>(context);
        muxer_->pb = output_.io();
        // to put the index first, the muxer reads its own output
        muxer_->url = av_strdup(("file:" + output_.file().temporary_path()).c_str());
        stream_ = avformat_new_stream(muxer_.get(), nullptr);
        if (muxer_->url == nullptr || stream_ == nullptr) av::out_of_memory();
        stream_->time_base = time_base;
    }

    /// Codec of the stream, to be set before `begin`.
    AVCodecParameters& codec() { return *stream_->codecpar; }
    /// Sets the pixel aspect. Call it before `begin`, after the codec is set.
    void set_pixel_aspect(Ratio aspect) {
        stream_->sample_aspect_ratio = stream_->codecpar->sample_aspect_ratio = av::rational(aspect);
    }
    Output& output() { return output_; }
    void begin() {
        AVDictionary* options = nullptr;
        av_dict_set(&options, "movflags", "+faststart", 0);
        const int error = avformat_write_header(muxer_.get(), &options);
        av_dict_free(&options);
        output_.check(error);
    }
    /// Writes the packet, and takes its content. Its times are in units of `time_base`.
    void write(AVPacket& packet, AVRational time_base) {
        av_packet_rescale_ts(&packet, time_base, stream_->time_base);
        packet.stream_index = 0;
        output_.check(av_write_frame(muxer_.get(), &packet));
        av_packet_unref(&packet);
    }
    void finish() {
        output_.check(av_write_trailer(muxer_.get()));
        output_.file().commit();
    }

private:
    Output output_;
    av::Muxer muxer_;
    AVStream* stream_;
};

/// Receives the encoder's next packet. Returns false if it needs a frame, or the end was reached.
bool receive(AVCodecContext& encoder, AVPacket& packet, Output& output) {
    const int error = avcodec_receive_packet(&encoder, &packet);
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return false;
    output.check(error);
    return true;
}

/// Repeats the last column and the last row of a frame up to the picture's ends.
void extend_edges(const FrameFormat& format, AVFrame& picture) {
    const auto row = [&](Index i) { return picture.data[0] + i * picture.linesize[0]; };
    const std::size_t row_bytes = static_cast<std::size_t>(picture.width * format.channels);
    for (Index i = 0; i < format.height; ++i) {
        for (Index j = format.width; j < picture.width; ++j) {
            std::copy_n(row(i) + (j - 1) * format.channels, format.channels, row(i) + j * format.channels);
        }
    }
    for (Index i = format.height; i < picture.height; ++i) std::memcpy(row(i), row(i - 1), row_bytes);
}

/// Throws InvalidArgument for frames that libx264 does not take.
void check_video(const FrameFormat& format) {
    constexpr Index longest = 16384;
    check_format(format);
    if (std::max(format.width, format.height) > longest) {
        throw InvalidArgument(fmt::format("a video of {} x {} cannot be written: at most {} x {} can", format.width,
                                          format.height, longest, longest));
    }
}

/// x264 holds tens of frames, to look ahead and for its threads: 0.7 GB of 4K. Of frames that are twice as large as
/// this it gets few to hold, at the same quality (docs/performance.md has sizes).
constexpr Index full_hd = 1920 * 1080;

int even(Index size) { return static_cast<int>(size + size % 2); }

/// Throws InvalidArgument for a rate that no video has.
AVRational per_second(double rate) {
    const AVRational rational = av_d2q(rate, 65535);  // the largest denominator that MPEG-4 has
    if (!(rate > 0) || rational.num <= 0 || rational.den <= 0) {
        throw InvalidArgument(fmt::format("no video has {} frames a second", rate));
    }
    return rational;
}

}  // namespace

struct VideoWriter::Impl {
    Impl(const std::string& path, FrameFormat format_, double rate);

    void write(std::span<const std::uint8_t> frame);
    void finish();
    /// Gives the encoder a picture, or null for the end, and passes the encoder's packets to the muxer.
    void encode(const AVFrame* picture);

    FrameFormat format;
    Mp4 file;
    av::Codec encoder;
    av::Packet packet;
    av::Scaler scaler;
    av::Picture padded, encoded;
    Index frames = 0;
};

VideoWriter::Impl::Impl(const std::string& path, FrameFormat format_, double rate)
    : format((check_video(format_), format_)), file(path, av_inv_q(per_second(rate))) {
    av::silence();
    padded = av::make_picture(av::pixel_format(format), even(format.width), even(format.height));
    encoded = av::make_picture(AV_PIX_FMT_YUV420P, padded->width, padded->height);

    const AVCodec* codec = avcodec_find_encoder_by_name("libx264");
    const bool h264 = codec != nullptr;
    if (!h264) codec = avcodec_find_encoder(AV_CODEC_ID_MPEG4);
    if (codec == nullptr) throw UnwritableFile(path, "FFmpeg has no encoder of H.264 or MPEG-4");
    encoder = av::own<av::Codec>(avcodec_alloc_context3(codec));
    encoder->width = padded->width;
    encoder->height = padded->height;
    encoder->pix_fmt = AV_PIX_FMT_YUV420P;
    encoder->framerate = per_second(rate);
    encoder->time_base = av_inv_q(encoder->framerate);
    encoder->color_range = AVCOL_RANGE_MPEG;
    encoder->colorspace = AVCOL_SPC_BT709;
    encoder->color_primaries = AVCOL_PRI_BT709;
    encoder->color_trc = AVCOL_TRC_BT709;
    encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    encoder->thread_count = 0;
    const bool large = format.width * format.height > 2 * full_hd;
    if (h264 && large) {
        encoder->thread_type = FF_THREAD_SLICE;
        encoder->max_b_frames = 0;
        encoder->refs = 1;
        av_opt_set_int(encoder->priv_data, "rc-lookahead", 4, 0);
    }
    if (h264) {
        av_opt_set(encoder->priv_data, "crf", "18", 0);
    } else {
        encoder->flags |= AV_CODEC_FLAG_QSCALE;
        encoder->global_quality = 2 * FF_QP2LAMBDA;
    }
    if (const int error = avcodec_open2(encoder.get(), codec, nullptr); error < 0) {
        throw InvalidArgument(fmt::format("{}: {} cannot encode {} x {} at {} frames a second: {}", path, codec->name,
                                          format.width, format.height, rate, av::reason(error)));
    }

    file.output().check(avcodec_parameters_from_context(&file.codec(), encoder.get()));
    file.begin();
    packet = av::own<av::Packet>(av_packet_alloc());

    scaler = av::own<av::Scaler>(
        sws_getContext(padded->width, padded->height, static_cast<AVPixelFormat>(padded->format), encoded->width,
                       encoded->height, AV_PIX_FMT_YUV420P, SWS_AREA | SWS_ACCURATE_RND, nullptr, nullptr, nullptr));
    const int* bt709 = sws_getCoefficients(SWS_CS_ITU709);
    sws_setColorspaceDetails(scaler.get(), bt709, 1, bt709, 0, 0, 1 << 16, 1 << 16);
}

void VideoWriter::Impl::encode(const AVFrame* picture) {
    file.output().check(avcodec_send_frame(encoder.get(), picture));
    while (receive(*encoder, *packet, file.output())) {
        packet->duration = 1;  // encoders leave it open, and readers skip packets beyond the end
        file.write(*packet, encoder->time_base);
    }
}

void VideoWriter::Impl::write(std::span<const std::uint8_t> frame) {
    if (!file.output().file().is_open()) throw InvalidArgument("the video is finished or has failed");
    check_frame(format, frame);
    av::copy_to_picture(format, frame, *padded);
    extend_edges(format, *padded);
    // the encoder may still hold the last picture
    if (av_frame_make_writable(encoded.get()) < 0) av::out_of_memory();
    sws_scale(scaler.get(), padded->data, padded->linesize, 0, padded->height, encoded->data, encoded->linesize);
    encoded->pts = frames++;
    encode(encoded.get());
}

void VideoWriter::Impl::finish() {
    if (!file.output().file().is_open()) throw InvalidArgument("the video is finished or has failed");
    if (frames == 0) throw InvalidArgument("a video without frames cannot be written");
    encode(nullptr);
    file.finish();
}

VideoWriter::VideoWriter(const std::string& path, FrameFormat format, double rate)
    : impl_(std::make_unique<Impl>(path, format, rate)) {}
VideoWriter::VideoWriter(VideoWriter&&) noexcept = default;
VideoWriter::~VideoWriter() = default;
void VideoWriter::write(std::span<const std::uint8_t> frame) { impl_->write(frame); }
void VideoWriter::finish() { impl_->finish(); }

void join_videos(const std::vector<std::string>& parts, const std::string& path, double rate, const FilmShape& shape) {
    av::silence();
    const AVRational period = av_inv_q(per_second(rate)), unit = av::rational(shape.unit);
    const auto count = static_cast<Index>(shape.times.size());
    // when frame k is shown: also of those before the first and after the last, as frames are stored before they are
    // shown
    const auto time_of = [&](Index k) {
        if (k < 0) return k * std::max<std::int64_t>(1, av_rescale_q(1, period, unit));
        if (k < count) return shape.times[static_cast<std::size_t>(k)].begin;
        return shape.times.back().begin + shape.times.back().duration + k - count;
    };
    Mp4 file(path, unit);
    const av::Packet packet = av::own<av::Packet>(av_packet_alloc());
    Index frames = 0;  // of the parts before
    for (const std::string& part : parts) {
        const InputFile input(part);
        AVFormatContext& demuxer = input.demuxer();
        if (demuxer.nb_streams != 1) throw UnreadableFile(part, "is no film of one stream");
        if (frames == 0) {
            file.output().check(avcodec_parameters_copy(&file.codec(), demuxer.streams[0]->codecpar));
            file.set_pixel_aspect(shape.pixel_aspect);
            file.begin();
        }
        Index of_part = 0;
        int error;
        while ((error = av_read_frame(&demuxer, packet.get())) >= 0) {
            if (++of_part + frames > count) throw InvalidArgument("there are fewer times than frames");
            av_packet_rescale_ts(packet.get(), demuxer.streams[0]->time_base, period);
            const Index shown = packet->pts + frames;
            packet->pts = time_of(shown);
            packet->dts = time_of(packet->dts + frames);
            packet->duration = time_of(shown + 1) - packet->pts;
            file.write(*packet, unit);
        }
        if (error != AVERROR_EOF) throw UnreadableFile(part, av::reason(error));
        frames += of_part;
    }
    if (frames == 0) throw InvalidArgument("a video without frames cannot be written");
    if (frames != count) throw InvalidArgument("there are more times than frames");
    file.finish();
}

void write_png(const std::string& path, FrameFormat format, std::span<const std::uint8_t> frame) {
    check_format(format);
    check_frame(format, frame);
    av::silence();
    const av::Picture picture =
        av::make_picture(av::pixel_format(format), static_cast<int>(format.width), static_cast<int>(format.height));
    av::copy_to_picture(format, frame, *picture);
    const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
    if (codec == nullptr) throw UnwritableFile(path, "FFmpeg has no encoder of PNG");
    const av::Codec encoder = av::own<av::Codec>(avcodec_alloc_context3(codec));
    encoder->width = picture->width;
    encoder->height = picture->height;
    encoder->pix_fmt = static_cast<AVPixelFormat>(picture->format);
    encoder->time_base = {1, 25};
    const av::Packet packet = av::own<av::Packet>(av_packet_alloc());
    int error = avcodec_open2(encoder.get(), codec, nullptr);
    if (error >= 0) error = avcodec_send_frame(encoder.get(), picture.get());
    if (error >= 0) error = avcodec_receive_packet(encoder.get(), packet.get());
    if (error == AVERROR(ENOMEM)) av::out_of_memory();
    if (error < 0) throw UnwritableFile(path, av::reason(error));
    io::AtomicFile file(path);
    file.write_at(0, packet->data, static_cast<std::size_t>(packet->size));
    file.commit();
}

}  // namespace quoin::video
