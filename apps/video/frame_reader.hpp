#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "video/frame.hpp"

namespace quoin::video {

/// Selection of the frames of an input, and of their format.
struct FrameSelection {
    Index start = 0;              ///< first frame, zero-based
    Index frames = -1;            ///< most frames; -1: all
    Index width = 0, height = 0;  ///< to scale to; one of them 0: in proportion to the other; both: as they are
    bool color = false;           ///< red, green, blue instead of grey
    bool color_if_any = false;    ///< as `color`, if the first frame is not grey to within four levels
    bool nearest = false;         ///< scale to the nearest pixel, for pictures of labels, and not to the mean
    bool (*stopped)() =
        nullptr;  ///< called while waiting for a stream (standard input, an address); true ends it there
};

/// Reads frames, in order, from
///
///   - a video file or one image;
///   - a directory: its images by name (.png .bmp .jpg .jpeg .tif .tiff .pgm .ppm .webp), img2 before img10; hidden
///     files and others are left out;
///   - a pattern, if no such file exists: `frames/*.png` as in a shell, or `frames/in%06d.jpg` with every number
///     that exists; in the same order.
///
/// Grey is luma of full range: 16..235 of limited-range YUV becomes 0..255, and grey pictures, in FFmpeg's convention
/// of full range, come back bit for bit unless scaled. Pictures deeper than 8 bits are rounded to within one. YUV
/// becomes RGB by the matrix that the stream names, otherwise by BT.709 from 720 rows on and by BT.601 below. Shrinking
/// averages over areas. Frames are upright: they are turned and mirrored as the display matrix of a video, or the EXIF
/// data of an image, says. Alpha is ignored. An image file with several pages gives its first page.
///
/// A video ends before its first frame that is not whole, and `damage` then says why. Frames before the first whole
/// frame are left out, for example if a recording starts between key frames. A cut that neither container nor frames
/// show, as in raw video, passes for the end.
///
/// Decoding takes the machine's threads. FFmpeg's messages, of the whole process, are kept off stderr.
class FrameReader {
public:
    /// Decodes up to the first frame of the selection.
    ///
    /// Throws UnreadableFile (no such file, no permission, a directory or pattern that matches nothing, neither a video
    /// nor an image, no frame that decodes), InvalidArgument (a selection out of range, or that starts beyond the end),
    /// OutOfMemory.
    explicit FrameReader(const std::string& path, FrameSelection selection = {});
    FrameReader(FrameReader&&) noexcept;
    ~FrameReader();

    const FrameFormat& format() const;
    /// Frames a second; 25 for images and if the container does not say.
    double rate() const;
    /// Frames of the selection according to the container, which may be wrong for a damaged file; -1: it does not say.
    Index frames_expected() const;
    /// Frames read so far.
    Index position() const;
    /// Unit of `time`, in seconds.
    Ratio time_unit() const;
    /// Time at which the last frame is shown, from the first one of the selection on. Images take 1/25 s each.
    FrameTime time() const;
    /// Width over height of a pixel, after scaling: the picture keeps its proportions.
    Ratio pixel_aspect() const;

    /// Reads the next frame into format().bytes() bytes; false at the end.
    ///
    /// Throws UnreadableFile, naming the frame by its zero-based number in the input, for a size that changes midway,
    /// and for an image of several that does not decode; InvalidArgument for a span of another size.
    bool next(std::span<std::uint8_t> frame);

    /// Empty, or why reading ended early: "decoding failed after 317 frames: the file ends inside a frame".
    const std::string& damage() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace quoin::video
