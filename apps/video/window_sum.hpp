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

/// Of each entry the sum over the window of (2·radius + 1)² pixels about it, as far as it lies in the frame.
template <class Sum, class Entry>
std::vector<Sum> window_sums(const FrameFormat& format, Index radius, std::span<const Entry> entries) {
    const Index row = format.width * format.channels, step = format.channels;
    std::vector<Sum> along(entries.size()), sums(entries.size());
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (Index y = 0; y < format.height; ++y) {
            for (Index i = 0; i < row; ++i) {
                Sum sum = 0;
                for (Index k = std::max(i % step, i - radius * step); k <= std::min(row - 1, i + radius * step);
                     k += step)
                    sum = static_cast<Sum>(sum + entries[static_cast<std::size_t>(y * row + k)]);
                along[static_cast<std::size_t>(y * row + i)] = sum;
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
    for (std::size_t i = 0; i < means.size(); ++i) {
        const Index pixel = static_cast<Index>(i) / format.channels;
        means[i] /= static_cast<Entry>(window_size(pixel % format.width, radius, format.width) *
                                       window_size(pixel / format.width, radius, format.height));
    }
    return means;
}

}  // namespace quoin::video
