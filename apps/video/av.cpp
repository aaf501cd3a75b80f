#include "video/av.hpp"

#include <fmt/format.h>

extern "C" {
#include <libavutil/imgutils.h>
}

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "quoin/error.hpp"

namespace quoin::video::av {
namespace {

thread_local std::string last_message;

void keep_message(void*, int level, const char* format, va_list arguments) {
    if (level > AV_LOG_ERROR) return;
    std::array<char, 256> line;
    std::vsnprintf(line.data(), line.size(), format, arguments);
    std::string message = line.data();
    while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
    std::replace_if(
        message.begin(), message.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    if (!message.empty()) last_message = std::move(message);
}

}  // namespace

void out_of_memory() { throw OutOfMemory("FFmpeg found no memory for a picture"); }

Picture make_picture(AVPixelFormat format, int width, int height) {
    Picture picture = own<Picture>(av_frame_alloc());
    picture->format = format;
    picture->width = width;
    picture->height = height;
    if (av_frame_get_buffer(picture.get(), 64) < 0) out_of_memory();
    return picture;
}

AVPixelFormat pixel_format(const FrameFormat& format) {
    return format.channels == 3 ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_GRAY8;
}

Orientation orientation_of(const AVFrame& picture) {
    const AVFrameSideData* side = av_frame_get_side_data(&picture, AV_FRAME_DATA_DISPLAYMATRIX);
    if (side == nullptr || side->size < 9 * sizeof(std::int32_t)) return {};
    std::array<std::int32_t, 9> matrix;
    std::memcpy(matrix.data(), side->data, sizeof matrix);
    const std::int64_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
    if (std::abs(b) > std::abs(a)) return {true, c < 0, b < 0};
    return {false, a < 0, d < 0};
}

void set_orientation(AVFrame& picture, int a, int b, int c, int d) {
    constexpr std::int32_t one = 1 << 16;
    const std::array<std::int32_t, 9> matrix{a * one, b * one, 0, c * one, d * one, 0, 0, 0, 1 << 30};
    av_frame_remove_side_data(&picture, AV_FRAME_DATA_DISPLAYMATRIX);
    AVFrameSideData* side = av_frame_new_side_data(&picture, AV_FRAME_DATA_DISPLAYMATRIX, sizeof matrix);
    if (side == nullptr) out_of_memory();
    std::memcpy(side->data, matrix.data(), sizeof matrix);
}

std::int64_t& duration_of(AVFrame& picture) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 0, 0)
    return picture.duration;
#else
    return picture.pkt_duration;
#endif
}

void copy_to_picture(const FrameFormat& format, std::span<const std::uint8_t> frame, AVFrame& picture) {
    const int row_bytes = static_cast<int>(format.width * format.channels);
    av_image_copy_plane(picture.data[0], picture.linesize[0], frame.data(), row_bytes, row_bytes,
                        static_cast<int>(format.height));
}

void silence() {
    static std::once_flag once;
    std::call_once(once, [] { av_log_set_callback(keep_message); });
}

std::string take_message() { return std::exchange(last_message, {}); }

std::string reason(int error) {
    std::array<char, AV_ERROR_MAX_STRING_SIZE> text;
    av_strerror(error, text.data(), text.size());
    const std::string message = take_message();
    return message.empty() ? text.data() : fmt::format("{} ({})", text.data(), message);
}

}  // namespace quoin::video::av
