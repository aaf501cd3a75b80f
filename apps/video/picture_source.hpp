#pragma once

#include <memory>
#include <string>
#include <vector>

#include "video/av.hpp"

namespace quoin::video {

/// Decoded pictures, in order.
class PictureSource {
public:
    virtual ~PictureSource() = default;
    /// Null at the end. Its time stamp, which grows, and duration are in units of `time_unit`; it has the shape of its
    /// pixels and, if it is not stored upright, a display matrix. Throws UnreadableFile.
    virtual av::Picture next() = 0;
    /// The file that the last picture came from.
    virtual const std::string& path() const = 0;
    /// How many pictures the container says there are; -1: it does not say.
    virtual Index count() const = 0;
    /// Pictures a second.
    virtual double rate() const = 0;
    /// Seconds.
    virtual Ratio time_unit() const = 0;
    /// Empty, or why the end came early.
    virtual const std::string& damage() const = 0;
};

/// `stopped`: asked while a stream is waited for, whether it ends here.
std::unique_ptr<PictureSource> open_video(const std::string& path, bool (*stopped)());
/// The first picture of each file; several are decoded at a time.
std::unique_ptr<PictureSource> open_images(std::vector<std::string> paths);

}  // namespace quoin::video
