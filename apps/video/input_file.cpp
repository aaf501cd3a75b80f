#include "video/input_file.hpp"

#include <fmt/format.h>

extern "C" {
#ifdef QUOIN_HAVE_CAMERAS
#include <libavdevice/avdevice.h>
#endif
#include <libavutil/dict.h>
}

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "quoin/error.hpp"
#include "video/stream_name.hpp"

namespace quoin::video {

bool names_camera(const std::string& path) { return path.starts_with("/dev/video"); }
bool names_stream(const std::string& path) {
    return path == "-" || path.find("://") != path.npos || names_camera(path);
}

namespace {

/// FFmpeg's reader of cameras, for an input that names one.
const AVInputFormat* camera_format(const std::string& path) {
#ifdef QUOIN_HAVE_CAMERAS
    avdevice_register_all();
    if (const AVInputFormat* format = av_find_input_format("v4l2")) return format;
#endif
    throw UnreadableFile(path,
                         fmt::format("is a camera, and this program was built without FFmpeg's libavdevice; as a pipe: "
                                     "ffmpeg -f v4l2 -i {} -f nut - | quoin rpca -",
                                     path));
}

}  // namespace

InputFile::InputFile(const std::string& path, bool single_image, bool (*stopped)())
    : path_(path), single_image_(single_image), stopped_(stopped) {
    const bool stream = names_stream(path), address = stream && path != "-";
    if (!stream) file_.emplace(path);
    const AVInputFormat* const format = single_image         ? av_find_input_format("image2")
                                        : names_camera(path) ? camera_format(path)
                                                             : nullptr;
    av::silence();
    av::take_message();
    AVFormatContext* demuxer = avformat_alloc_context();
    if (demuxer == nullptr) av::out_of_memory();
    demuxer_.reset(demuxer);
    demuxer->interrupt_callback = {[](void* self) { return int{static_cast<InputFile*>(self)->stopped()}; }, this};
    AVDictionary* options = nullptr;
    if (address) {
        avformat_network_init();
    } else {
        io_ = av::make_io(this, stream ? read_standard_input : read, nullptr, stream ? nullptr : seek);
        demuxer->pb = io_.get();
        av_dict_set(&options, "protocol_whitelist", "none", 0);  // a playlist opens no other file and no connection
    }
    if (single_image) av_dict_set(&options, "pattern_type", "none", 0);
    // frees the demuxer where it fails
    demuxer_.release();
    const int error = avformat_open_input(&demuxer, single_image || address ? path.c_str() : nullptr, format, &options);
    av_dict_free(&options);
    if (error < 0) {
        throw UnreadableFile(path_, fmt::format("cannot be read as a video or an image: {}", av::reason(error)));
    }
    demuxer_.reset(demuxer);
}

av::Codec InputFile::open_decoder(const AVStream& stream) const {
    const AVCodecParameters& parameters = *stream.codecpar;
    const AVCodec* decoder = avcodec_find_decoder(parameters.codec_id);
    if (decoder == nullptr) {
        throw UnreadableFile(path_, fmt::format("FFmpeg has no decoder of {}", avcodec_get_name(parameters.codec_id)));
    }
    av::Codec codec = av::own<av::Codec>(avcodec_alloc_context3(decoder));
    if (single_image_) {
        codec->thread_count = 1;
        // otherwise the missing part of a cut JPEG is grey; not for TIFF, which may have tags that FFmpeg does not know
        if (decoder->id == AV_CODEC_ID_MJPEG) codec->err_recognition = AV_EF_EXPLODE;
    } else {
        codec->thread_count = 0;
        if (!file_) {
            codec->thread_type = FF_THREAD_SLICE;  // threads that decode a frame each wait for as many frames
            codec->flags |= AV_CODEC_FLAG_LOW_DELAY;
        }
        // Frame threads of these lose the mark of a picture whose errors were concealed; H.264's in FFmpeg 8 do not.
        const bool marks_get_lost = decoder->id == AV_CODEC_ID_MPEG4 ||
                                    (decoder->id == AV_CODEC_ID_H264 && avcodec_version() < AV_VERSION_INT(62, 0, 0));
        if (marks_get_lost) codec->thread_type = FF_THREAD_SLICE;
    }
    int error = avcodec_parameters_to_context(codec.get(), &parameters);
    if (error >= 0) error = avcodec_open2(codec.get(), decoder, nullptr);
    if (error < 0) throw UnreadableFile(path_, fmt::format("could not be decoded: {}", av::reason(error)));
    return codec;
}

int InputFile::read_standard_input(void* self, std::uint8_t* to, int bytes) {
    constexpr int milliseconds = 50;  // between two questions whether to stop
    pollfd input{STDIN_FILENO, POLLIN, 0};
    do {
        if (static_cast<InputFile*>(self)->stopped()) return AVERROR_EOF;
    } while (poll(&input, 1, milliseconds) <= 0);
    const ssize_t n = ::read(STDIN_FILENO, to, static_cast<std::size_t>(bytes));
    return n > 0 ? static_cast<int>(n) : n == 0 ? AVERROR_EOF : AVERROR(errno);
}

int InputFile::read(void* self, std::uint8_t* to, int bytes) {
    InputFile& input = *static_cast<InputFile*>(self);
    const std::string_view all = input.file_->bytes();
    const std::size_t n = std::min(static_cast<std::size_t>(bytes), all.size() - std::min(input.position_, all.size()));
    if (n == 0) return AVERROR_EOF;
    std::memcpy(to, all.data() + input.position_, n);
    input.position_ += n;
    return static_cast<int>(n);
}

std::int64_t InputFile::seek(void* self, std::int64_t offset, int whence) {
    InputFile& input = *static_cast<InputFile*>(self);
    if (whence == AVSEEK_SIZE) return input.bytes();
    if ((whence & ~AVSEEK_FORCE) != SEEK_SET || offset < 0) return AVERROR(EINVAL);
    input.position_ = static_cast<std::size_t>(offset);
    return offset;
}

}  // namespace quoin::video
