#pragma once

#include <memory>
#include <span>

#include "video/frame.hpp"

namespace quoin::video {

/// Writes frames to a file descriptor as they come, uncompressed in a NUT stream: `ffplay -` shows it, `ffmpeg -i -`
/// takes it.
class StreamWriter {
public:
    /// Throws InvalidArgument (a size that no picture has), UnwritableFile, OutOfMemory.
    /// `unit`: seconds, of the frames' times. `pixel_aspect`: width over height of a pixel.
    StreamWriter(int descriptor, FrameFormat format, Ratio unit, Ratio pixel_aspect);
    ~StreamWriter();

    /// The frame, which is shown after the one before, has left when this returns. Throws InvalidArgument (a frame of
    /// another size), UnwritableFile.
    void write(std::span<const std::uint8_t> frame, FrameTime time);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace quoin::video
