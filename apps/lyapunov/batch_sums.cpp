#include "lyapunov/batch_sums.hpp"

#include <algorithm>

namespace quoin {

namespace {

constexpr Index max_batches = 256;

}  // namespace

void BatchSums::add(std::span<const double> logarithms) {
    for (std::size_t i = 0; i < current.size(); ++i) current[i] += logarithms[i];
    if (++filled < length) return;
    sums.insert(sums.end(), current.begin(), current.end());
    std::fill(current.begin(), current.end(), 0.);
    filled = 0;
    if (batches() < max_batches) return;
    const std::size_t width = static_cast<std::size_t>(p);
    for (std::size_t b = 0; b < max_batches / 2; ++b) {
        for (std::size_t i = 0; i < width; ++i)
            sums[b * width + i] = sums[2 * b * width + i] + sums[(2 * b + 1) * width + i];
    }
    sums.resize(sums.size() / 2);
    length *= 2;
}

std::vector<double> BatchSums::total() const {
    std::vector<double> total(current);
    for (std::size_t k = 0; k < sums.size(); ++k) total[k % static_cast<std::size_t>(p)] += sums[k];
    return total;
}

}  // namespace quoin
