#include "host/tuning.hpp"

namespace quoin {
namespace {

// By least squares of relative errors: R, V tau R, Q and R, and QᵀC of 90 shapes by each method, 9×2 to 2 000 000×3 to 5000×420, the
// fastest of several runs on one core of an AMD EPYC 7003 with AVX2; half of the modelled times are within 8% of the measured ones. 40 of
// the shapes are those of bench/results/epyc_7003_regret.csv. A choice needs the ratios of times alone, and they hold with AVX-512 too: of
// the 287 cases of other shapes in bench/results/xeon_regret.csv 98% are within 10% of the best method, and all within 22%.

constexpr StepTimes f64_times = {.gram = {0.032, 0.31},
                                 .solve = {0.023, 0.034},
                                 .square = {0.027, 3.3, 89},
                                 .signed_lu = {0.14, 12},
                                 .leaf = {0.026, 1.3, 330},
                                 .node = {0, 3.9},
                                 .form = {0.034, 0.74},
                                 .tree_update = {0.028, 0.57},
                                 .panel = {0.026, 0.36, 350},
                                 .update = {0.027, 0.39},
                                 .scan = 0.74,
                                 .call = 240,
                                 .certificate = 810};
constexpr StepTimes f32_times = {.gram = {0.043, 0.32},
                                 .solve = {0.0098, 0.067},
                                 .square = {0.014, 6.7, 310},
                                 .signed_lu = {0.076, 20},
                                 .leaf = {0.015, 0.58, 520},
                                 .node = {0, 0},
                                 .form = {0.018, 0.36},
                                 .tree_update = {0.014, 0.26},
                                 .panel = {0.016, 0.15, 510},
                                 .update = {0.013, 0.21},
                                 .scan = 0.36,
                                 .call = 0,
                                 .certificate = 790};

}  // namespace

const StepTimes& Tuning<Host>::step_times(Index element_bytes) {
    return element_bytes == sizeof(float) ? f32_times : f64_times;
}

}  // namespace quoin
