#include "medians.hpp"

#include <algorithm>
#include <cmath>

#include "interrupt.hpp"

namespace quoin::cli {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<double> medians_of(const std::vector<std::function<double()>>& runs, int repeat) {
    double longest = 0;
    for (int warm_up = 0; warm_up < (longest > 1 ? 1 : 2); ++warm_up) {
        longest = 0;
        for (const auto& run : runs) {
            throw_if_interrupted();
            longest = std::max(longest, run());
        }
    }
    if (repeat == 0)
        repeat = longest > 10 ? 1 : std::clamp(static_cast<int>(std::ceil(0.5 / std::max(longest, 1e-3))), 3, 30);
    std::vector<std::vector<double>> seconds(runs.size());
    for (int i = 0; i < repeat; ++i)
        for (std::size_t r = 0; r < runs.size(); ++r) {
            throw_if_interrupted();
            seconds[r].push_back(runs[r]());
        }
    std::vector<double> medians;
    for (auto& of_run : seconds) medians.push_back(median(std::move(of_run)));
    return medians;
}

double joules_of(EnergyMeter& meter, const std::function<double()>& run, double seconds) {
    const double watts = meter.watts([&] {
        throw_if_interrupted();
        run();
    });
    return watts < 0 ? -1 : watts * seconds;
}

}  // namespace quoin::cli
