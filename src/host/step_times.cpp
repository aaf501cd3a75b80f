#include "host/tuning.hpp"

namespace quoin {
namespace {

// First by least squares of relative errors: R, V tau R, Q and R, and QᵀC of 90 shapes by each method, 9×2 to 2 000 000×3 to 5000×420, the
// fastest of several runs on one core of an AMD EPYC 7003 with AVX2. Then, from there, by a random search for the choices that are least
// behind, in 1650 cases on one and two cores with AVX2 and AVX-512 and on 4 and 16 cores: those of epyc_7003_regret.csv, xeon_regret.csv,
// xeon_regret_two_cores.csv and xeon_regret_more_cores.csv in bench/results. A choice needs the ratios of times alone. Panels share
// less of their work among cores than Gram matrices do: against these they are dearer here than on one core.

constexpr StepTimes f64_times = {.gram = {0.0224, 0.303},
                                 .solve = {0.0263, 0.0365},
                                 .square = {0.027, 3.3, 117},
                                 .signed_lu = {0.14, 12},
                                 .leaf = {0.0279, 0.85, 314},
                                 .node = {0, 3.58},
                                 .form = {0.0339, 0.74},
                                 .tree_update = {0.0259, 0.655},
                                 .panel = {0.0243, 0.29, 294},
                                 .update = {0.027, 0.387},
                                 .scan = 0.764,
                                 .call = 240,
                                 .certificate = 810};
constexpr StepTimes f32_times = {.gram = {0.0365, 0.411},
                                 .solve = {0.0108, 0.0671},
                                 .square = {0.0141, 6.7, 570},
                                 .signed_lu = {0.0758, 19.9},
                                 .leaf = {0.0134, 0.58, 622},
                                 .node = {0, 0},
                                 .form = {0.0181, 0.356},
                                 .tree_update = {0.014, 0.244},
                                 .panel = {0.0157, 0.134, 634},
                                 .update = {0.0132, 0.416},
                                 .scan = 0.454,
                                 .call = 0,
                                 .certificate = 919};

}  // namespace

const StepTimes& Tuning<Host>::step_times(Index element_bytes) {
    return element_bytes == sizeof(float) ? f32_times : f64_times;
}

}  // namespace quoin
