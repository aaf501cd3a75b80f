#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "video/frame.hpp"

namespace quoin::video {

/// Returns how many pixels of the window of `radius` pixels on either side of `at` lie in a row or column of `size`.
inline Index window_size(Index at, Index radius, Index size) {
    return std::min(size - 1, at + radius) - std::max<Index>(0, at - radius) + 1;
}

/// Returns `window_size` for each entry of a row.
template <class Size>
std::vector<Size> window_widths(const FrameFormat& format, Index radius) {
    std::vector<Size> widths;
    for (Index i = 0; i < format.width * format.channels; ++i)
        widths.push_back(static_cast<Size>(window_size(i / format.channels, radius, format.width)));
    return widths;
}

/// Calls finish(y, sums) for each row y of a frame. `sums` has for each entry the sum over the window of (2·radius +
/// 1)² pixels about it, inside the frame. set_row(y, entries) writes the entries of a row. Rows are shared out to
/// OpenMP's threads.
template <class Sum, Index radius, class SetRow, class Finish>
void for_window_sums(const FrameFormat& format, SetRow set_row, Finish finish) {
    constexpr Index window = 2 * radius + 1;
    const Index row = format.width * format.channels, step = format.channels;
#pragma omp parallel
    {
        // a row lies between zeros; sums along row k lie at k % window, and zeros follow after the sums
        std::vector<Sum> padded(static_cast<std::size_t>(row + 2 * radius * step)),
            along(static_cast<std::size_t>((window + 1) * row)), sums(static_cast<std::size_t>(row));
        const auto sum_along = [&](Index y) {
            set_row(y, padded.data() + radius * step);
            const Sum* const from = padded.data();
            Sum* const __restrict to = along.data() + y % window * row;
            for (Index i = 0; i < row; ++i) {
                Sum sum = 0;
                for (Index k = 0; k < window; ++k) sum = static_cast<Sum>(sum + from[i + k * step]);
                to[i] = sum;
            }
        };
        Index summed = 0;  // number of rows; `along` has the last ones
#pragma omp for schedule(static)
        for (Index y = 0; y < format.height; ++y) {
            const Index first = std::max<Index>(0, y - radius), end = std::min(format.height, y + radius + 1);
            for (summed = std::max(summed, first); summed < end; ++summed) sum_along(summed);
            std::array<const Sum*, window> from;
            for (Index k = 0; k < window; ++k) {
                const Index of = y - radius + k;
                from[k] = along.data() + (first <= of && of < end ? of % window : window) * row;
            }
            Sum* const __restrict to = sums.data();
            for (Index i = 0; i < row; ++i) {
                Sum sum = 0;
                for (Index k = 0; k < window; ++k) sum = static_cast<Sum>(sum + from[k][i]);
                to[i] = sum;
            }
            finish(y, std::span<const Sum>(sums));
        }
    }
}

/// Sets means := finish(mean) for the mean over each of these windows.
template <class Sum, Index radius, class SetRow, class Finish>
void set_window_means(const FrameFormat& format, SetRow set_row, Finish finish, std::span<Sum> means) {
    const std::vector<Sum> widths = window_widths<Sum>(format, radius);
    for_window_sums<Sum, radius>(format, set_row, [&](Index y, std::span<const Sum> sums) {
        const Sum height = static_cast<Sum>(window_size(y, radius, format.height));
        Sum* const __restrict mean = means.data() + y * format.width * format.channels;
        for (std::size_t i = 0; i < sums.size(); ++i) mean[i] = finish(sums[i] / (widths[i] * height));
    });
}

}  // namespace quoin::video
