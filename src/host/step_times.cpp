#include "host/tuning.hpp"

namespace quoin {
namespace {

// First by least squares of relative errors: R, V tau R, Q and R, and QᵀC of 90 shapes by each method, 9×2 to 2 000 000×3 to 5000×420, the
// fastest of several runs on one core of an AMD EPYC 7003 with AVX2. Then, from there, by a random search for the choices that are least
// behind, in 1314 cases on 1, 2, 4, 8 and 16 cores with AVX-512: those of bench/results/regret_one_pass.csv. Those of f32 once more after
// a panel's columns took two sweeps, in 505 cases on one and two cores and some of the others. A choice needs the ratios of times alone.
// CholeskyQR2 counts as one pass.

constexpr StepTimes f64_times = {.gram = {0.0242, 0.431},
                                 .solve = {0.025, 0.0374},
                                 .square = {0.0258, 3.22, 132},
                                 .signed_lu = {0.135, 12.1},
                                 .leaf = {0.0273, 0.583, 153},
                                 .node = {0, 3.54},
                                 .form = {0.0339, 0.731},
                                 .tree_update = {0.0259, 0.832},
                                 .panel = {0.0238, 0.221, 412},
                                 .update = {0.027, 0.416},
                                 .scan = 0.768,
                                 .call = 240,
                                 .certificate = 1.14e+03};
constexpr StepTimes f32_times = {.gram = {0.0213, 0.327},
                                 .solve = {0.00376, 0.0665},
                                 .square = {0.0173, 3.09, 535},
                                 .signed_lu = {0.0725, 19.9},
                                 .leaf = {0.0145, 0.863, 641},
                                 .node = {0, 0},
                                 .form = {0.0169, 0.36},
                                 .tree_update = {0.014, 0.307},
                                 .panel = {0.0155, 0.139, 674},
                                 .update = {0.0132, 0.444},
                                 .scan = 0.453,
                                 .call = 0,
                                 .certificate = 1.08e+03};

}  // namespace

const StepTimes& Tuning<Host>::step_times(Index element_bytes) {
    return element_bytes == sizeof(float) ? f32_times : f64_times;
}

}  // namespace quoin
