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

/// Of each entry the sum over the window of (2·radius + 1)² pixels about it, as far as it lies in the frame.
template <class Sum, class Entry>
std::vector<Sum> window_sums(const FrameFormat& format, Index radius, std::span<const Entry> entries) {
    const Index row = format.width * format.channels, step = format.channels;
    std::vector<Sum> along(entries.size()), sums(entries.size());
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (Index y = 0; y < format.height; ++y) {
            const Entry* const from = entries.data() + y * row;
            Sum* const to = along.data() + y * row;
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
            for (Index k = -radius; k <= radius; ++k) {
                const Entry* const shifted = from + k * step;
                for (Index i = left; i < right; ++i) to[i] = static_cast<Sum>(to[i] + shifted[i]);
            }
        }
#pragma omp for schedule(static)
        for (Index y = 0; y < format.height; ++y) {
            for (Index k = std::max<Index>(0, y - radius); k <= std::min(format.height - 1, y + radius); ++k) {
                for (Index i = 0; i < row; ++i) {
                    Sum& sum = sums[static_cast<std::size_t>(y * row + i)];
                    sum = static_cast<Sum>(sum + along[static_cast<std::size_t>(k * row + i)]);
                }
            }
        }
    }
    return sums;
}

/// The means over these windows.
template <class Entry>
std::vector<Entry> window_means(const FrameFormat& format, Index radius, std::span<const Entry> entries) {
    std::vector<Entry> means = window_sums<Entry, Entry>(format, radius, entries);
    const std::vector<Index> widths = window_sizes(radius, format.width);
    Entry* mean = means.data();
    for (Index y = 0; y < format.height; ++y) {
        const Index height = window_size(y, radius, format.height);
        for (const Index width : widths) {
            const Entry count = static_cast<Entry>(width * height);
            for (Index c = 0; c < format.channels; ++c) *mean++ /= count;
        }
    }
    return means;
}

}  // namespace quoin::video
