#include "measure/medians.hpp"

#include <algorithm>
#include <cmath>

#include "interrupt.hpp"

namespace quoin::cli {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

namespace {

/// The seconds of each run, called in turn in rounds; for `repeat` = 0 for `enough` seconds a run, `least` to `most`
/// rounds.
std::vector<std::vector<double>> seconds_of_rounds(const std::vector<std::function<double()>>& runs, int repeat,
                                                   double enough, int least, int most, bool warm_ups_count) {
    double longest = 0;
    std::vector<std::vector<double>> seconds(runs.size());
    for (int warm_up = 0; warm_up < (longest > 1 ? 1 : 2); ++warm_up) {
        longest = 0;
        for (std::size_t r = 0; r < runs.size(); ++r) {
            throw_if_interrupted();
            const double one = runs[r]();
            if (warm_ups_count) seconds[r].push_back(one);
            longest = std::max(longest, one);
        }
    }
    if (repeat == 0)
        repeat =
            longest > 10 ? 1 : std::clamp(static_cast<int>(std::ceil(enough / std::max(longest, 1e-6))), least, most);
    for (int i = 0; i < repeat; ++i)
        for (std::size_t r = 0; r < runs.size(); ++r) {
            throw_if_interrupted();
            seconds[r].push_back(runs[r]());
        }
    return seconds;
}

}  // namespace

std::vector<double> medians_of(const std::vector<std::function<double()>>& runs, int repeat) {
    std::vector<double> medians;
    for (auto& of_run : seconds_of_rounds(runs, repeat, 0.5, 3, 30, false))
        medians.push_back(median(std::move(of_run)));
    return medians;
}

std::vector<double> fastest_of(const std::vector<std::function<double()>>& runs, int repeat) {
    std::vector<double> fastest;
    for (const auto& of_run : seconds_of_rounds(runs, repeat, 0.1, 1, 500, true))
        fastest.push_back(*std::min_element(of_run.begin(), of_run.end()));
    return fastest;
}

double joules_of(EnergyMeter& meter, const std::function<double()>& run, double seconds) {
    const double watts = meter.watts([&] {
        throw_if_interrupted();
        run();
    });
    return watts < 0 ? -1 : watts * seconds;
}

}  // namespace quoin::cli
