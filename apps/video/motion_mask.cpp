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
    const std::vector<Index> widths = window_sizes(radius, format.width);
    for (Index y = 0; y < format.height; ++y) {
        const Index height = window_size(y, radius, format.height);
        std::uint8_t* const row = won.data() + y * format.width;
        for (Index x = 0; x < format.width; ++x) row[x] = 2 * row[x] > widths[static_cast<std::size_t>(x)] * height;
    }
    return won;
}

/// The pixels that are connected to `start` by sides or corners for which `belongs`, which must be false of those that `visit`
/// has been called for.
template <class Belongs, class Visit>
void flood(const FrameFormat& format, Index start, Belongs belongs, Visit visit) {
    if (!belongs(start)) return;
    std::vector<Index> edge{start};
    visit(start);
    while (!edge.empty()) {
        const Index pixel = edge.back(), x = pixel % format.width, y = pixel / format.width;
        edge.pop_back();
        for (Index v = std::max<Index>(0, y - 1); v <= std::min(format.height - 1, y + 1); ++v) {
            for (Index u = std::max<Index>(0, x - 1); u <= std::min(format.width - 1, x + 1); ++u) {
                const Index next = v * format.width + u;
                if (!belongs(next)) continue;
                visit(next);
                edge.push_back(next);
            }
        }
    }
}

/// Makes foreground of the background that is connected to no side of the frame, in pieces of at most `most` pixels.
void fill_holes(const FrameFormat& format, Index most, std::span<std::uint8_t> mask) {
    // runs of background in rows, joined where they touch those of the row before
    struct Run {
        Index row, begin, end;
        std::size_t piece;  // a run of the same piece before it, or itself
        Index pixels;       // of the piece, where `piece` is this run
        bool open;
    };
    std::vector<Run> runs;
    const auto piece_of = [&](std::size_t k) {
        while (runs[k].piece != k) k = runs[k].piece = runs[runs[k].piece].piece;
        return k;
    };
    std::size_t above = 0, above_end = 0;
    for (Index y = 0; y < format.height; ++y) {
        const std::uint8_t* const row = mask.data() + y * format.width;
        const std::size_t first = runs.size();
        for (Index x = 0; x < format.width;) {
            if (row[x] != 0) {
                ++x;
                continue;
            }
            const Index begin = x;
            while (x < format.width && row[x] == 0) ++x;
            const std::size_t k = runs.size();
            runs.push_back(
                {y, begin, x, k, x - begin, y == 0 || y == format.height - 1 || begin == 0 || x == format.width});
            while (above < above_end && runs[above].end <= begin) ++above;
            for (std::size_t other = above; other < above_end && runs[other].begin < x; ++other) {
                const std::size_t p = piece_of(other), q = piece_of(k);
                if (p == q) continue;
                Run &kept = runs[std::min(p, q)], &joined = runs[std::max(p, q)];
                joined.piece = std::min(p, q);
                kept.pixels += joined.pixels;
                kept.open = kept.open || joined.open;
            }
        }
        above = first;
        above_end = runs.size();
    }
    for (std::size_t k = 0; k < runs.size(); ++k) {
        const Run& piece = runs[piece_of(k)];
        if (piece.open || piece.pixels > most) continue;
        std::fill_n(mask.begin() + runs[k].row * format.width + runs[k].begin, runs[k].end - runs[k].begin, 255);
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
            grey, static_cast<Index>(start),
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
