#pragma once

// Owners of FFmpeg's objects, and helpers that every use of them shares.

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "video/frame.hpp"

namespace quoin::video::av {

template <auto free_object>
struct Free {
    template <class T>
    void operator()(T* object) const {
        if constexpr (requires { free_object(&object); }) {
            free_object(&object);
        } else {
            free_object(object);
        }
    }
};
struct FreeIo {
    void operator()(AVIOContext* io) const {
        av_freep(&io->buffer);
        avio_context_free(&io);
    }
};

using Io = std::unique_ptr<AVIOContext, FreeIo>;
using Demuxer = std::unique_ptr<AVFormatContext, Free<avformat_close_input>>;
using Muxer = std::unique_ptr<AVFormatContext, Free<avformat_free_context>>;
using Codec = std::unique_ptr<AVCodecContext, Free<avcodec_free_context>>;
using Packet = std::unique_ptr<AVPacket, Free<av_packet_free>>;
using Picture = std::unique_ptr<AVFrame, Free<av_frame_free>>;
using Scaler = std::unique_ptr<SwsContext, Free<sws_freeContext>>;

[[noreturn]] void out_of_memory();
/// Returns the owner of an object from one of FFmpeg's allocating functions. Throws OutOfMemory for null.
template <class Owner>
Owner own(typename Owner::pointer object) {
    if (object == nullptr) out_of_memory();
    return Owner(object);
}

/// Returns a stream of bytes that FFmpeg reads by `read` or writes by `write`, each called with `self`, data and their
/// number. A stream without one of them has nullptr there. Throws OutOfMemory.
template <class Read, class Write, class Seek>
Io make_io(void* self, Read read, Write write, Seek seek) {
    constexpr int buffer_bytes = 1 << 16, writes = !std::is_null_pointer_v<Write>;
    auto* buffer = static_cast<unsigned char*>(av_malloc(buffer_bytes));
    if (buffer == nullptr) out_of_memory();
    AVIOContext* io = avio_alloc_context(buffer, buffer_bytes, writes, self, read, write, seek);
    if (io == nullptr) av_free(buffer);
    return own<Io>(io);
}

/// Allocates a picture with rows padded for FFmpeg's vector code. Throws OutOfMemory.
Picture make_picture(AVPixelFormat format, int width, int height);

/// GRAY8 or RGB24.
AVPixelFormat pixel_format(const FrameFormat& format);
inline AVRational rational(Ratio ratio) { return {ratio.num, ratio.den}; }

/// How a stored picture becomes upright: transposed or not, then mirrored at either axis.
struct Orientation {
    bool transposed = false, mirrors_x = false, mirrors_y = false;
    bool operator==(const Orientation&) const = default;
};
/// Returns the orientation of the picture's display matrix, to the next right angle.
Orientation orientation_of(const AVFrame& picture);
/// Gives the picture the display matrix x' = a x + c y, y' = b x + d y.
void set_orientation(AVFrame& picture, int a, int b, int c, int d);
/// Duration of the picture, in units of its time stamp; 0: not known.
std::int64_t& duration_of(AVFrame& picture);

/// Copies a frame to the upper left corner of a picture of its pixel format.
void copy_to_picture(const FrameFormat& format, std::span<const std::uint8_t> frame, AVFrame& picture);
/// Stops FFmpeg from writing to stderr.
void silence();
/// Returns the last error that FFmpeg reported on this thread since the last call; decoders' threads report elsewhere.
std::string take_message();
/// Returns FFmpeg's text for an error, with `take_message`.
std::string reason(int error);

}  // namespace quoin::video::av
