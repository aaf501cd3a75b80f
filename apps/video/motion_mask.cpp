#include "video/motion_mask.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "video/window_sum.hpp"

namespace quoin::video {
namespace {

/// z of one channel and of three that normal noise exceeds with probability 0.134 and 0.0027.
struct Bounds {
    double grows, starts;
};
constexpr Bounds of_grey{1.5, 3}, of_color{2.36, 3.76};
constexpr Index radius = 2;  // of a vote

/// 1 where most of the pixels about are 1.
std::vector<std::uint8_t> majority(const FrameFormat& format, std::span<const std::uint8_t> votes) {
    std::vector<std::uint8_t> won = window_sums<std::uint8_t, std::uint8_t>(format, radius, votes);
    for (Index y = 0; y < format.height; ++y) {
        for (Index x = 0; x < format.width; ++x) {
            std::uint8_t& pixel = won[static_cast<std::size_t>(y * format.width + x)];
            pixel = 2 * pixel > window_size(x, radius, format.width) * window_size(y, radius, format.height);
        }
    }
    return won;
}

/// The pixels that are connected to `start` by neighbours for which `belongs`, which must be false of those that `visit` has
/// been called for.
template <class Belongs, class Visit>
void flood(const FrameFormat& format, Index start, bool diagonally, Belongs belongs, Visit visit) {
    if (!belongs(start)) return;
    std::vector<Index> edge{start};
    visit(start);
    while (!edge.empty()) {
        const Index pixel = edge.back(), x = pixel % format.width, y = pixel / format.width;
        edge.pop_back();
        for (Index v = std::max<Index>(0, y - 1); v <= std::min(format.height - 1, y + 1); ++v) {
            for (Index u = std::max<Index>(0, x - 1); u <= std::min(format.width - 1, x + 1); ++u) {
                const Index next = v * format.width + u;
                if ((!diagonally && u != x && v != y) || !belongs(next)) continue;
                visit(next);
                edge.push_back(next);
            }
        }
    }
}

/// Makes foreground of the background that is connected to no side of the frame, in pieces of at most `most` pixels.
void fill_holes(const FrameFormat& format, Index most, std::span<std::uint8_t> mask) {
    std::vector<std::uint8_t> seen(mask.begin(), mask.end());
    std::vector<Index> hole;
    for (Index start = 0; start < static_cast<Index>(mask.size()); ++start) {
        hole.clear();
        bool open = false;
        flood(
            format, start, false, [&](Index i) { return seen[static_cast<std::size_t>(i)] == 0; },
            [&](Index i) {
                seen[static_cast<std::size_t>(i)] = 1;
                hole.push_back(i);
                const Index x = i % format.width, y = i / format.width;
                open = open || x == 0 || y == 0 || x == format.width - 1 || y == format.height - 1;
            });
        if (open || static_cast<Index>(hole.size()) > most) continue;
        for (const Index i : hole) mask[static_cast<std::size_t>(i)] = 255;
    }
}

}  // namespace

double starting_difference(const FrameFormat& format, double noise, double threshold) {
    return (format.channels == 3 ? of_color : of_grey).starts * std::max(noise, threshold / 2);
}

template <class T>
void set_motion_mask(const FrameFormat& format, std::span<const T> r, std::span<const float> noise, double threshold,
                     std::span<std::uint8_t> mask) {
    const FrameFormat grey{format.width, format.height, 1};
    std::vector<std::uint8_t> grows(mask.size()), starts(mask.size());
    const double least = threshold / 2;
    const Bounds above = format.channels == 3 ? of_color : of_grey;
    for (std::size_t i = 0; i < mask.size(); ++i) {
        double squares = 0;
        for (std::size_t c = 0; c < static_cast<std::size_t>(format.channels); ++c) {
            const std::size_t at = i * static_cast<std::size_t>(format.channels) + c;
            const double scale = std::max<double>(noise[at], least), value = static_cast<double>(r[at]);
            squares += value * value / (scale * scale);
        }
        grows[i] = squares > above.grows * above.grows;
        starts[i] = squares > above.starts * above.starts;
    }
    grows = majority(grey, grows);
    starts = majority(grey, starts);
    std::fill(mask.begin(), mask.end(), std::uint8_t{0});
    for (std::size_t start = 0; start < mask.size(); ++start) {
        if (starts[start] == 0) continue;
        flood(
            grey, static_cast<Index>(start), true,
            [&](Index i) { return grows[static_cast<std::size_t>(i)] != 0 && mask[static_cast<std::size_t>(i)] == 0; },
            [&](Index i) { mask[static_cast<std::size_t>(i)] = 255; });
    }
    fill_holes(grey, grey.bytes() / 100, mask);
}

template <class T>
void set_raw_mask(const FrameFormat& format, std::span<const T> s, double threshold, std::span<std::uint8_t> mask) {
    const auto channels = static_cast<std::size_t>(format.channels);
    for (std::size_t i = 0; i < mask.size(); ++i) {
        T most = 0;
        for (std::size_t c = 0; c < channels; ++c) most = std::max(most, std::abs(s[i * channels + c]));
        mask[i] = static_cast<double>(most) > threshold ? 255 : 0;
    }
}

template void set_raw_mask<float>(const FrameFormat&, std::span<const float>, double, std::span<std::uint8_t>);
template void set_raw_mask<double>(const FrameFormat&, std::span<const double>, double, std::span<std::uint8_t>);
template void set_motion_mask<float>(const FrameFormat&, std::span<const float>, std::span<const float>, double,
                                     std::span<std::uint8_t>);
template void set_motion_mask<double>(const FrameFormat&, std::span<const double>, std::span<const float>, double,
                                      std::span<std::uint8_t>);

}  // namespace quoin::video
