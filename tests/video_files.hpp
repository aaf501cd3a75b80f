#pragma once

// Shared by the tests of frames: pictures, and videos made of them.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "io_files.hpp"
#include "video/frame_reader.hpp"
#include "video/video_writer.hpp"

namespace quoin::test {

using namespace quoin::video;
using Pixels = std::vector<std::uint8_t>;
using Frames = std::vector<Pixels>;

/// A picture without structure, another one for each k.
inline Pixels noise(const FrameFormat& format, unsigned k) {
    Pixels pixels(static_cast<std::size_t>(format.bytes()));
    std::uint32_t state = 2654435761u * (k + 1);
    for (std::uint8_t& pixel : pixels) {
        state = 1664525u * state + 1013904223u;
        pixel = static_cast<std::uint8_t>(state >> 24);
    }
    return pixels;
}

/// A smooth picture that moves with k.
inline Pixels waves(const FrameFormat& format, unsigned k) {
    Pixels pixels(static_cast<std::size_t>(format.bytes()));
    for (std::size_t p = 0; p < pixels.size(); ++p) {
        const double c = static_cast<double>(p % format.channels),
                     x = static_cast<double>(p / format.channels % format.width),
                     y = static_cast<double>(p / format.channels / format.width);
        pixels[p] = static_cast<std::uint8_t>(127.5 + 100 * std::sin(0.1 * x + 0.2 * k + c) * std::cos(0.07 * y));
    }
    return pixels;
}

inline Frames read_all(FrameReader& reader) {
    Frames frames;
    Pixels frame(static_cast<std::size_t>(reader.format().bytes()));
    while (reader.next(frame)) frames.push_back(frame);
    EXPECT_EQ(reader.position(), static_cast<Index>(frames.size()));
    EXPECT_FALSE(reader.next(frame));
    return frames;
}
inline Frames read_all(const std::string& path, FrameSelection selection = {}) {
    FrameReader reader(path, selection);
    return read_all(reader);
}

inline std::vector<std::int64_t> read_times(FrameReader& reader) {
    std::vector<std::int64_t> times;
    for (Pixels frame(static_cast<std::size_t>(reader.format().bytes())); reader.next(frame);) {
        times.push_back(reader.time().begin);
    }
    return times;
}

inline double psnr(const Pixels& a, const Pixels& b) {
    double squares = 0;
    for (std::size_t p = 0; p < a.size(); ++p) squares += std::pow(double{1} * a[p] - b[p], 2);
    return 10 * std::log10(255. * 255. * static_cast<double>(a.size()) / squares);
}

class VideoTest : public IoTest {
protected:
    /// Writes a film of `shape`, of two parts if it has more than 5 frames.
    std::string write_film(const std::string& name, const FrameFormat& format, const FilmShape& shape) const {
        const std::size_t frames = shape.times.size(), first = std::min<std::size_t>(frames, 5);
        std::vector<std::string> parts{write_video("first.mp4", format, static_cast<int>(first))};
        if (frames > first) parts.push_back(write_video("second.mp4", format, static_cast<int>(frames - first)));
        join_videos(parts, path(name), 25, shape);
        return path(name);
    }
    std::string write_video(const std::string& name, const FrameFormat& format, int frames, double rate = 25,
                            Pixels (*picture)(const FrameFormat&, unsigned) = waves) const {
        VideoWriter writer(path(name), format, rate);
        for (int k = 0; k < frames; ++k) writer.write(picture(format, static_cast<unsigned>(k)));
        writer.finish();
        return path(name);
    }
};

}  // namespace quoin::test
