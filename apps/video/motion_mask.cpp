#include "video/motion_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
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
    std::vector<std::uint8_t> won(votes.size());
    const std::vector<Index> widths = window_sizes(radius, format.width);
    for_window_sums<std::uint8_t>(
        format, radius, [&](Index i) { return votes[static_cast<std::size_t>(i)]; },
        [&](Index y, std::span<const std::uint8_t> sums) {
            const Index height = window_size(y, radius, format.height);
            std::uint8_t* const row = won.data() + y * format.width;
            for (Index x = 0; x < format.width; ++x) {
                const auto at = static_cast<std::size_t>(x);
                row[x] = 2 * sums[at] > widths[at] * height;
            }
        });
    return won;
}

/// Pixels of one value that lie side by side in a row, and the piece that they belong to.
struct Run {
    Index row, begin, end;
    std::size_t piece;  // the first run of the piece
    Index pixels;       // of the piece, where this is its first run
    bool marked;        // too: whether a run of it is
};

/// The runs of `value`, joined into pieces where they touch by sides or, if `corners`, by corners. All other pixels are `other`.
template <class Marks>
std::vector<Run> runs_of(const FrameFormat& format, std::span<const std::uint8_t> pixels, std::uint8_t value,
                         std::uint8_t other, bool corners, Marks marks) {
    std::vector<Run> runs;
    const auto first_of = [&](std::size_t k) {
        while (runs[k].piece != k) k = runs[k].piece = runs[runs[k].piece].piece;
        return k;
    };
    const Index reach = corners ? 1 : 0;
    std::size_t above = 0, above_end = 0;
    for (Index y = 0; y < format.height; ++y) {
        const std::uint8_t* const row = pixels.data() + y * format.width;
        const auto next = [&](Index x, std::uint8_t wanted) {
            const void* const at = std::memchr(row + x, wanted, static_cast<std::size_t>(format.width - x));
            return at ? static_cast<const std::uint8_t*>(at) - row : format.width;
        };
        const std::size_t first = runs.size();
        for (Index x = next(0, value); x < format.width; x = next(x, value)) {
            const Index begin = x;
            x = next(x, other);
            const std::size_t k = runs.size();
            runs.push_back({y, begin, x, k, x - begin, marks(y, begin, x)});
            while (above < above_end && runs[above].end + reach <= begin) ++above;
            for (std::size_t near = above; near < above_end && runs[near].begin < x + reach; ++near) {
                const std::size_t p = first_of(near), q = first_of(k);
                if (p == q) continue;
                Run &kept = runs[std::min(p, q)], &joined = runs[std::max(p, q)];
                joined.piece = std::min(p, q);
                kept.pixels += joined.pixels;
                kept.marked = kept.marked || joined.marked;
            }
        }
        above = first;
        above_end = runs.size();
    }
    for (std::size_t k = 0; k < runs.size(); ++k) runs[k].piece = first_of(k);
    return runs;
}

/// Makes foreground of the runs whose piece is `wanted`.
template <class Wanted>
void fill(const FrameFormat& format, const std::vector<Run>& runs, std::span<std::uint8_t> mask, Wanted wanted) {
    for (const Run& run : runs) {
        if (wanted(runs[run.piece]))
            std::fill(mask.begin() + run.row * format.width + run.begin,
                      mask.begin() + run.row * format.width + run.end, std::uint8_t{255});
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
#pragma omp parallel for schedule(static)
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
    // what is connected to a start
    const std::vector<Run> grown = runs_of(grey, grows, 1, 0, /*corners=*/true, [&](Index y, Index begin, Index end) {
        return std::memchr(starts.data() + y * grey.width + begin, 1, static_cast<std::size_t>(end - begin)) != nullptr;
    });
    fill(grey, grown, mask, [](const Run& piece) { return piece.marked; });
    // background that is connected to no side of the frame
    const std::vector<Run> holes = runs_of(grey, mask, 0, 255, /*corners=*/false, [&](Index y, Index begin, Index end) {
        return y == 0 || y == grey.height - 1 || begin == 0 || end == grey.width;
    });
    const Index most = grey.bytes() / 100;
    fill(grey, holes, mask, [=](const Run& piece) { return !piece.marked && piece.pixels <= most; });
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
