#pragma once

#include <functional>
#include <vector>

#include "measure/energy_meter.hpp"

namespace quoin::cli {

double median(std::vector<double> values);

/// Returns the medians of `runs`. Each run returns its seconds. They are called in turn, so that a machine that drifts
/// treats all alike: `repeat` times, or, for 0, for a second, 5 to 50 times (3 times beyond 2 s a run, once beyond 10
/// s), after two warm-up rounds (one beyond 1 s).
std::vector<double> medians_of(const std::vector<std::function<double()>>& runs, int repeat);

/// Returns the median of `repeat` runs or, for 0, of 3 to 50 runs for half a second, after a warm-up. For 0 a first run
/// of more than a second is the only one.
double median_of(const std::function<double()>& run, int repeat);

/// The fastest of the same runs, `repeat` times or, for 0, for a tenth of a second, 1 to 500 times, and of the warm-up
/// rounds: other work on the machine only adds to a time.
std::vector<double> fastest_of(const std::vector<std::function<double()>>& runs, int repeat);

/// Returns the joules of one `run`, which takes `seconds`: the mean power by the meter times `seconds`; −1 if that is
/// not measured.
double joules_of(EnergyMeter& meter, const std::function<double()>& run, double seconds);

}  // namespace quoin::cli
