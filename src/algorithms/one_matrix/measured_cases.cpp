// Means of measured times over the nearest shapes.

#include "algorithms/one_matrix/measured_cases.hpp"

#include <cmath>
#include <vector>

#include "primitives/tuning.hpp"

namespace quoin {

Method nearest_choice(std::span<const TunedCase> cases, Index m, Index n, ScalarKind scalar, QForm q, Method usual) {
    constexpr std::size_t most_cases = 4;
    constexpr double octave = 1, exact = 0.01, max_ratio = 0.95;
    std::vector<std::pair<double, const TunedCase*>> near;
    for (const TunedCase& c : cases) {
        if (c.scalar != scalar || c.q != q) continue;
        const double x = std::log2(number(c.rows) / number(m)), y = std::log2(number(c.cols) / number(n));
        if (std::abs(x) <= octave && std::abs(y) <= octave) near.emplace_back(x * x + y * y, &c);
    }
    const auto end = near.begin() + static_cast<std::ptrdiff_t>(std::min(most_cases, near.size()));
    std::partial_sort(near.begin(), end, near.end());
    near.erase(end, near.end());
    const std::size_t own = place_of(usual);
    Method best = usual;
    double least = std::log(max_ratio);
    for (std::size_t k = 0; k < tuned_methods.size(); ++k) {
        double sum = 0, weights = 0;
        bool is_known = own < tuned_methods.size() && !near.empty();
        for (const auto& [squared, c] : near) {
            is_known = is_known && c->seconds[k] > 0 && c->seconds[own] > 0;
            if (!is_known) break;
            sum += std::log(c->seconds[k] / c->seconds[own]) / (squared + exact);
            weights += 1 / (squared + exact);
        }
        if (!is_known || !(sum / weights < least)) continue;
        least = sum / weights;
        best = tuned_methods[k];
    }
    return best;
}

}  // namespace quoin
