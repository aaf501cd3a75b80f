#include "video/noise_level.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "video/window_sum.hpp"

namespace quoin::video {
namespace {

constexpr double three_quarters = 0.6744897502, ninety_five = 1.6448536270;  // quantiles of the normal distribution

/// The entry that a share `q` of the values is below. Reorders them.
float quantile(std::vector<float>& values, double q) {
    if (values.empty()) return 0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

}  // namespace

template <class T>
std::vector<float> noise_levels(const FrameFormat& format, MatrixView<const T> M, MatrixView<const T> L) {
    constexpr Index rows_at_once = 64;  // a cache line or more of each column
    const Index rows = M.rows, frames = M.cols;
    std::vector<float> squares(static_cast<std::size_t>(rows));
#pragma omp parallel
    {
        Matrix<float> block(std::max<Index>(frames, 1), rows_at_once);
        std::vector<float> values;
#pragma omp for schedule(static)
        for (Index first = 0; first < rows; first += rows_at_once) {
            const Index last = std::min(rows, first + rows_at_once);
            for (Index j = 0; j < frames; ++j) {
                for (Index i = first; i < last; ++i) block(j, i - first) = static_cast<float>(M(i, j) - L(i, j));
            }
            for (Index i = first; i < last; ++i) {
                const float* r = &block(0, i - first);
                values.assign(r, r + frames);
                for (float& value : values) value = std::abs(value);
                const double size = quantile(values, 0.5) / three_quarters;
                values.clear();
                for (Index j = 1; j < frames; ++j) values.push_back(std::abs(r[j] - r[j - 1]));
                const double change = quantile(values, 0.9) / (std::numbers::sqrt2 * ninety_five);
                squares[static_cast<std::size_t>(i)] = static_cast<float>(std::pow(std::max(size, change), 2));
            }
        }
    }
    std::vector<float> levels = window_means<float>(format, 2, squares);
    for (float& level : levels) level = std::sqrt(level);
    return levels;
}

template std::vector<float> noise_levels<float>(const FrameFormat&, MatrixView<const float>, MatrixView<const float>);
template std::vector<float> noise_levels<double>(const FrameFormat&, MatrixView<const double>,
                                                 MatrixView<const double>);

}  // namespace quoin::video
