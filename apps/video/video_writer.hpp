#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "video/frame.hpp"

namespace quoin::video {

/// Writes an .mp4 whose frames any player shows: H.264 (libx264, constant rate factor 18) where FFmpeg has it,
/// otherwise MPEG-4 part 2 of high quality; YUV 4:2:0, BT.709 of limited range, index first. Odd widths and heights are
/// made even by repeating the last column and row.
///
/// The file appears at `finish`, complete, and a writer destroyed before leaves nothing.
class VideoWriter {
public:
    /// Throws InvalidArgument (a size or rate that no video has), UnwritableFile, OutOfMemory.
    VideoWriter(const std::string& path, FrameFormat format, double rate);
    VideoWriter(VideoWriter&&) noexcept;
    ~VideoWriter();

    /// Throws InvalidArgument (a frame of another size, or after `finish`), UnwritableFile.
    void write(std::span<const std::uint8_t> frame);
    /// Throws InvalidArgument (no frame was written), UnwritableFile.
    void finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// When the frames of a film are shown, and the width over the height of its pixels.
struct FilmShape {
    Ratio unit{1, 25};  ///< seconds
    std::vector<FrameTime> times;
    Ratio pixel_aspect;
};

/// Writes one .mp4 of the frames of several parts that VideoWriter wrote in one format and `rate`, in order, without
/// encoding them anew; it appears complete or not at all. Frame k is shown at shape.times[k].
///
/// Throws UnreadableFile, UnwritableFile, OutOfMemory, InvalidArgument (no frame, or another number of times).
void join_videos(const std::vector<std::string>& parts, const std::string& path, double rate, const FilmShape& shape);

/// Writes one frame as a PNG, which appears complete or not at all. Throws InvalidArgument, UnwritableFile,
/// OutOfMemory.
void write_png(const std::string& path, FrameFormat format, std::span<const std::uint8_t> frame);

}  // namespace quoin::video
