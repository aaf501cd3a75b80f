#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "video/frame.hpp"

namespace quoin::video {

/// Pixels of the window of `radius` pixels either side of `at` that lie in a row or column of `size`.
inline Index window_size(Index at, Index radius, Index size) {
    return std::min(size - 1, at + radius) - std::max<Index>(0, at - radius) + 1;
}

/// That of each pixel of a row or column.
inline std::vector<Index> window_sizes(Index radius, Index size) {
    std::vector<Index> sizes;
    for (Index at = 0; at < size; ++at) sizes.push_back(window_size(at, radius, size));
    return sizes;
}

/// For each row y of a frame finish(y, sums): of each entry the sum over the window of (2·radius + 1)² pixels about it, as far as it lies
/// in the frame. entry(i) is entry i of the frame. Rows are shared out to OpenMP's threads.
template <class Sum, class Entry, class Finish>
void for_window_sums(const FrameFormat& format, Index radius, Entry entry, Finish finish) {
    const Index row = format.width * format.channels, step = format.channels, window = 2 * radius + 1;
#pragma omp parallel
    {
        // sums along row k lie at k % window
        std::vector<Sum> entries(static_cast<std::size_t>(row)), along(static_cast<std::size_t>(window * row)),
            sums(static_cast<std::size_t>(row));
        const auto sum_along = [&](Index y) {
            const Sum* const from = entries.data();
            Sum* const to = along.data() + y % window * row;
            for (Index i = 0; i < row; ++i) entries[static_cast<std::size_t>(i)] = static_cast<Sum>(entry(y * row + i));
            const Index left = std::min(row, radius * step), right = std::max(left, row - radius * step);
            const auto sum_at_side = [&](Index i) {
                Sum sum = 0;
                for (Index k = std::max(i % step, i - radius * step); k <= std::min(row - 1, i + radius * step);
                     k += step)
                    sum = static_cast<Sum>(sum + from[k]);
                to[i] = sum;
            };
            for (Index i = 0; i < left; ++i) sum_at_side(i);
            for (Index i = right; i < row; ++i) sum_at_side(i);
            std::fill(to + left, to + right, Sum(0));
            for (Index k = -radius; k <= radius; ++k) {
                const Sum* const shifted = from + k * step;
                for (Index i = left; i < right; ++i) to[i] = static_cast<Sum>(to[i] + shifted[i]);
            }
        };
        Index summed = 0;  // rows, the last ones of which `along` has
#pragma omp for schedule(static)
        for (Index y = 0; y < format.height; ++y) {
            const Index first = std::max<Index>(0, y - radius), end = std::min(format.height, y + radius + 1);
            for (summed = std::max(summed, first); summed < end; ++summed) sum_along(summed);
            std::fill(sums.begin(), sums.end(), Sum(0));
            for (Index k = first; k < end; ++k) {
                const Sum* const from = along.data() + k % window * row;
                for (Index i = 0; i < row; ++i) {
                    Sum& sum = sums[static_cast<std::size_t>(i)];
                    sum = static_cast<Sum>(sum + from[i]);
                }
            }
            finish(y, std::span<const Sum>(sums));
        }
    }
}

/// finish(mean) of the mean over each of these windows.
template <class Sum, class Entry, class Finish>
std::vector<Sum> window_means(const FrameFormat& format, Index radius, Entry entry, Finish finish) {
    std::vector<Sum> means(static_cast<std::size_t>(format.bytes()));
    const std::vector<Index> widths = window_sizes(radius, format.width);
    for_window_sums<Sum>(format, radius, entry, [&](Index y, std::span<const Sum> sums) {
        const Index height = window_size(y, radius, format.height);
        const Sum* sum = sums.data();
        Sum* mean = means.data() + y * format.width * format.channels;
        for (const Index width : widths) {
            const Sum count = static_cast<Sum>(width * height);
            for (Index c = 0; c < format.channels; ++c) *mean++ = finish(*sum++ / count);
        }
    });
    return means;
}

}  // namespace quoin::video
