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

/// Returns how often a run of `seconds` is timed.
int repetitions(double seconds) {
    if (seconds > 2) return seconds > 10 ? 1 : 3;
    return std::clamp(static_cast<int>(std::ceil(1 / std::max(seconds, 1e-6))), 5, 50);
}

/// Calls `runs` in turn in rounds, two warm-up rounds (one beyond 1 s), then `rounds(longest seconds of a run)` rounds.
/// Returns the seconds of each run; the warm-up's are among them if `warm_ups_count`.
template <class Rounds>
std::vector<std::vector<double>> seconds_of_rounds(const std::vector<std::function<double()>>& runs, Rounds rounds,
                                                   bool warm_ups_count) {
    std::vector<std::vector<double>> seconds(runs.size());
    const auto round = [&](bool counts) {
        double longest = 0;
        for (std::size_t r = 0; r < runs.size(); ++r) {
            throw_if_interrupted();
            const double one = runs[r]();
            if (counts) seconds[r].push_back(one);
            longest = std::max(longest, one);
        }
        return longest;
    };
    double longest = round(warm_ups_count);
    if (longest <= 1) longest = round(warm_ups_count);
    for (int i = rounds(longest); i > 0; --i) round(true);
    return seconds;
}

}  // namespace

std::vector<double> medians_of(const std::vector<std::function<double()>>& runs, int repeat) {
    std::vector<double> medians;
    const auto rounds = [&](double longest) { return repeat > 0 ? repeat : repetitions(longest); };
    for (auto& of_run : seconds_of_rounds(runs, rounds, false)) medians.push_back(median(std::move(of_run)));
    return medians;
}

double median_of(const std::function<double()>& run, int repeat) {
    throw_if_interrupted();
    const double first = run();
    if (repeat == 0) {
        if (first > 1) return first;
        repeat = std::clamp(static_cast<int>(std::ceil(0.5 / std::max(first, 1e-6))), 3, 50);
    }
    std::vector<double> seconds;
    for (int i = 0; i < repeat; ++i) {
        throw_if_interrupted();
        seconds.push_back(run());
    }
    return median(std::move(seconds));
}

std::vector<double> fastest_of(const std::vector<std::function<double()>>& runs, int repeat) {
    std::vector<double> fastest;
    const auto rounds = [&](double longest) {
        if (repeat > 0) return repeat;
        return longest > 10 ? 1 : std::clamp(static_cast<int>(std::ceil(0.1 / std::max(longest, 1e-6))), 1, 500);
    };
    for (const auto& of_run : seconds_of_rounds(runs, rounds, true))
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
