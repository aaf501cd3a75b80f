#pragma once

#include <functional>
#include <vector>

#include "measure/energy_meter.hpp"

namespace quoin::cli {

double median(std::vector<double> values);

/// Returns the medians of `runs`. Each run returns its seconds. They are called in turn: `repeat` times, or, for 0, for
/// half a second, 3 to 30 times (once beyond 10 s), after two warm-up rounds (one beyond 1 s).
std::vector<double> medians_of(const std::vector<std::function<double()>>& runs, int repeat);

/// The fastest of the same runs, `repeat` times or, for 0, for a tenth of a second, 1 to 500 times, and of the warm-up
/// rounds: other work on the machine only adds to a time.
std::vector<double> fastest_of(const std::vector<std::function<double()>>& runs, int repeat);

/// Returns the joules of one `run`, which takes `seconds`: the mean power by the meter times `seconds`; −1 if that is
/// not measured.
double joules_of(EnergyMeter& meter, const std::function<double()>& run, double seconds);

}  // namespace quoin::cli
