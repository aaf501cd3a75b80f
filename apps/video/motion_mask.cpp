#include "video/motion_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
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

/// Counts the votes for a row of n pixels, whose windows are `widths` wide and `height` high. Sets `lower` to 1 where
/// more than half of the window voted in the lower byte, otherwise to 0, and `upper` by the upper byte.
void count_votes(Index n, const std::int16_t* votes, const std::int16_t* widths, Index height,
                 std::uint8_t* __restrict lower, std::uint8_t* __restrict upper) {
    const auto h = static_cast<std::int16_t>(height);
    for (Index x = 0; x < n; ++x) {
        const auto pixels = static_cast<std::int16_t>(widths[x] * h);
        lower[x] = static_cast<std::int16_t>(2 * (votes[x] & 255)) > pixels;
        upper[x] = static_cast<std::int16_t>(2 * (votes[x] >> 8)) > pixels;
    }
}

/// Writes z² of each pixel.
template <Index channels, class T>
void set_squares(std::span<const T> r, std::span<const float> noise, double least, std::span<float> squares) {
    const auto pixels = static_cast<Index>(squares.size());
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < pixels; ++i) {
        double sum = 0;
        for (Index c = 0; c < channels; ++c) {
            const double scale = std::max<double>(noise[i * channels + c], least),
                         value = static_cast<double>(r[i * channels + c]);
            sum += value * value / (scale * scale);
        }
        squares[i] = static_cast<float>(sum);
    }
}

/// The pixels [begin, end) of row y and the pixels that touch them, inside the frame.
class Around {
public:
    Around(const FrameFormat& format, Index begin, Index end, Index y)
        : width_(format.width),
          left_(std::max<Index>(0, begin - 1)),
          right_(std::min(format.width, end + 1)),
          top_(std::max<Index>(0, y - 1)),
          bottom_(std::min(format.height, y + 2)) {}

    bool any_above(std::span<const float> squares, float bound) const {
        int any = 0;  // a loop of vectors
        for_each(squares, [&](float square) { any |= square > bound ? 1 : 0; });
        return any != 0;
    }
    /// Whether the pixel in the middle, of z² = `square`, is at an edge and outside: it has less than half of the
    /// edge's height.
    bool outside(std::span<const float> squares, float square, Bounds above) const {
        int below = 0;
        float largest = 0;
        for_each(squares, [&](float other) {
            below += other <= above.grows * above.grows;
            largest = std::max(largest, other);
        });
        const double half = (std::sqrt(largest) - above.grows) / 2;
        return below >= 3 && half > 0 && square <= half * half;
    }

private:
    template <class F>
    void for_each(std::span<const float> squares, F f) const {
        for (Index y = top_; y < bottom_; ++y) {
            for (Index x = left_; x < right_; ++x) f(squares[y * width_ + x]);
        }
    }
    Index width_, left_, right_, top_, bottom_;
};

/// grows and starts := 1 where z of most of the pixels about is above either bound, 0 elsewhere.
void set_majorities(const FrameFormat& grey, std::span<const float> squares, Bounds above, std::uint8_t* grows,
                    std::uint8_t* starts) {
    const auto above_grows = static_cast<float>(above.grows * above.grows),
               above_starts = static_cast<float>(above.starts * above.starts);
    const auto widths = window_widths<std::int16_t>(grey, radius);
    // the votes of both decisions, at most 25, in a byte each
    const auto votes = std::make_unique_for_overwrite<std::int16_t[]>(squares.size());
    const auto strong = static_cast<float>(9 * above.grows * above.grows);  // half of less is below the first bound
#pragma omp parallel for schedule(static)
    for (Index y = 0; y < grey.height; ++y) {
        constexpr Index piece = 64;
        for (Index x = 0; x < grey.width; x += piece) {
            const Index end = std::min(grey.width, x + piece);
            const float* const square = squares.data() + y * grey.width;
            std::int16_t* const vote = votes.get() + y * grey.width;
            for (Index i = x; i < end; ++i) {
                vote[i] = static_cast<std::int16_t>((square[i] > above_grows ? 1.0f : 0.0f) +
                                                    (square[i] > above_starts ? 256.0f : 0.0f));
            }
            const Around about(grey, x, end, y);
            if (!about.any_above(squares, strong)) continue;
            for (Index i = x; i < end; ++i) {
                if ((vote[i] & 1) && Around(grey, i, i + 1, y).outside(squares, square[i], above)) --vote[i];
            }
        }
    }
    const auto copy_votes = [&](Index y, std::int16_t* row) {
        std::copy_n(votes.get() + y * grey.width, grey.width, row);
    };
    for_window_sums<std::int16_t, radius>(grey, copy_votes, [&](Index y, std::span<const std::int16_t> sums) {
        count_votes(grey.width, sums.data(), widths.data(), window_size(y, radius, grey.height), grows + y * grey.width,
                    starts + y * grey.width);
    });
}

/// Consecutive pixels of one value in a row, and their piece.
struct Run {
    Index row, begin, end;
    std::size_t piece;  // the first run of the piece
    Index pixels;       // of the piece, if this is its first run
    bool marked;        // likewise, whether any run of the piece is
};

/// Returns the runs of `value`, joined into pieces if they touch by sides or, with `corners`, by corners. All other
/// pixels are `other`.
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

/// Makes the runs whose piece is `wanted` foreground.
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
    const auto starts = std::make_unique_for_overwrite<std::uint8_t[]>(mask.size());
    const auto of_pixels = std::make_unique_for_overwrite<float[]>(mask.size());
    const std::span<float> squares(of_pixels.get(), mask.size());
    if (format.channels == 3) {
        set_squares<3>(r, noise, threshold / 2, squares);
    } else {
        set_squares<1>(r, noise, threshold / 2, squares);
    }
    set_majorities(grey, squares, format.channels == 3 ? of_color : of_grey, mask.data(), starts.get());
    // pieces that are connected to a start
    const std::vector<Run> grown = runs_of(grey, mask, 1, 0, /*corners=*/true, [&](Index y, Index begin, Index end) {
        return std::memchr(starts.get() + y * grey.width + begin, 1, static_cast<std::size_t>(end - begin)) != nullptr;
    });
    std::fill(mask.begin(), mask.end(), std::uint8_t{0});
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
