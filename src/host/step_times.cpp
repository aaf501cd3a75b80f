#include "host/tuning.hpp"

namespace quoin {
namespace {

// First by least squares of relative errors: R, V tau R, Q and R, and QᵀC of 90 shapes by each method, 9×2 to 2 000 000×3 to 5000×420, the
// fastest of several runs on one core of an AMD EPYC 7003 with AVX2. Then, from there, by a random search for the choices that are least
// behind, in 1168 cases on 1, 2, 4, 8 and 16 cores with AVX-512: those of bench/results/regret_one_pass.csv. A choice needs the ratios of times
// alone. CholeskyQR2 counts as one pass.

constexpr StepTimes f64_times = {.gram = {0.0242, 0.406},
                                 .solve = {0.0249, 0.0375},
                                 .square = {0.0261, 3.12, 118},
                                 .signed_lu = {0.135, 11.6},
                                 .leaf = {0.0273, 0.585, 181},
                                 .node = {0, 3.56},
                                 .form = {0.0338, 0.732},
                                 .tree_update = {0.0259, 0.795},
                                 .panel = {0.024, 0.252, 286},
                                 .update = {0.027, 0.415},
                                 .scan = 0.73,
                                 .call = 240,
                                 .certificate = 953};
constexpr StepTimes f32_times = {.gram = {0.0228, 0.355},
                                 .solve = {0.00649, 0.0671},
                                 .square = {0.0217, 5.91, 514},
                                 .signed_lu = {0.0758, 19.9},
                                 .leaf = {0.0141, 0.794, 622},
                                 .node = {0, 0},
                                 .form = {0.0169, 0.356},
                                 .tree_update = {0.014, 0.242},
                                 .panel = {0.0156, 0.135, 671},
                                 .update = {0.0132, 0.416},
                                 .scan = 0.493,
                                 .call = 0,
                                 .certificate = 848};

}  // namespace

const StepTimes& Tuning<Host>::step_times(Index element_bytes) {
    return element_bytes == sizeof(float) ? f32_times : f64_times;
}

}  // namespace quoin
