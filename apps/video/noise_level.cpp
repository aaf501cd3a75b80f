#include "video/noise_level.hpp"

#include <algorithm>
#include <cmath>

#include "video/window_sum.hpp"

namespace quoin::video {
namespace {

constexpr Index span_frames = 6;            // of one range
constexpr double calm = 0.4;                // share of the ranges, without anything that passes
constexpr double range_of_normal = 2.2599;  // the quantile `calm` of the range of span_frames normal numbers

/// Returns the entry such that a share `q` of the values is below it. Reorders them.
float quantile(std::vector<float>& values, double q) {
    if (values.empty()) return 0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

/// Writes √ of the means over 5×5 pixels.
template <class SetRow>
void set_root_of_means(const FrameFormat& format, SetRow set_row, std::span<float> roots) {
    set_window_means<float, 2>(
        format, set_row, [](float mean) { return std::sqrt(mean); }, roots);
}

}  // namespace

void smooth_noise(const FrameFormat& format, std::span<const float> noise, std::span<float> smoothed) {
    const Index row = format.width * format.channels;
    const auto set_squares = [&](Index y, float* squares) {
        const float* const deviation = noise.data() + y * row;
        for (Index i = 0; i < row; ++i) squares[i] = deviation[i] * deviation[i];
    };
    set_root_of_means(format, set_squares, smoothed);
}

template <class T>
std::vector<float> noise_levels(const FrameFormat& format, Index frames,
                                const std::function<void(Range rows, MatrixView<T> R)>& residuals) {
    constexpr Index rows_at_once = 1 << 14, max_entries = 1 << 21;
    const Index rows = format.bytes();
    const Index spans = std::max<Index>(frames / span_frames, frames > 0);  // the last one has the frames that are left
    const Index height = std::clamp<Index>(max_entries / std::max<Index>(frames, 1), 64, rows_at_once);
    std::vector<float> squares(static_cast<std::size_t>(rows));
    Matrix<T> R(height, frames);
    for (Index first = 0; first < rows; first += height) {
        const Index h = std::min(height, rows - first);
        residuals({first, first + h}, R.view().row_block({0, h}));
#pragma omp parallel
        {
            std::vector<float> ranges;
#pragma omp for schedule(static)
            for (Index i = 0; i < h; ++i) {
                ranges.clear();
                for (Index span = 0; span < spans; ++span) {
                    const Index begin = span * span_frames, end = span + 1 < spans ? begin + span_frames : frames;
                    T least = R(i, begin), most = least;
                    for (Index j = begin + 1; j < end; ++j)
                        least = std::min(least, R(i, j)), most = std::max(most, R(i, j));
                    ranges.push_back(static_cast<float>(most - least));
                }
                squares[static_cast<std::size_t>(first + i)] =
                    static_cast<float>(std::pow(quantile(ranges, calm) / range_of_normal, 2));
            }
        }
    }
    std::vector<float> levels(squares.size());
    const Index row = format.width * format.channels;
    set_root_of_means(
        format, [&](Index y, float* to) { std::copy_n(squares.data() + y * row, row, to); }, levels);
    return levels;
}

template std::vector<float> noise_levels<float>(const FrameFormat&, Index,
                                                const std::function<void(Range, MatrixView<float>)>&);
template std::vector<float> noise_levels<double>(const FrameFormat&, Index,
                                                 const std::function<void(Range, MatrixView<double>)>&);

}  // namespace quoin::video
