#pragma once

#include <memory>
#include <span>

#include "video/frame.hpp"

namespace quoin::video {

/// Writes frames to a file descriptor as they come, uncompressed in a NUT stream: `ffplay -` shows it, `ffmpeg -i -` takes it.
class StreamWriter {
public:
    /// Throws InvalidArgument (a size that no picture has), UnwritableFile, OutOfMemory.
    StreamWriter(int descriptor, FrameFormat format, double rate);
    ~StreamWriter();

    /// The frame has left when this returns. Throws InvalidArgument (a frame of another size), UnwritableFile.
    void write(std::span<const std::uint8_t> frame);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace quoin::video
