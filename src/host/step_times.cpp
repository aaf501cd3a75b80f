#include "host/tuning.hpp"

namespace quoin {
namespace {

// First by least squares of relative errors: R, V tau R, Q and R, and QᵀC of 90 shapes by each method, 9×2 to 2 000 000×3 to 5000×420, the
// fastest of several runs on one core of an AMD EPYC 7003 with AVX2. Then, from there, by a random search for the choices that are least
// behind, in 1314 cases on 1, 2, 4, 8 and 16 cores with AVX-512: those of bench/results/regret_one_pass.csv. Those of f32 once more after
// a panel's columns took two sweeps, in 505 cases on one and two cores and some of the others. A choice needs the ratios of times alone.
// CholeskyQR2 counts as one pass.

constexpr StepTimes f64_times = {.gram = {0.0169, 0.513},
                                 .solve = {0.0218, 0.0372},
                                 .square = {0.0173, 3.2, 132},
                                 .signed_lu = {0.136, 12.3},
                                 .leaf = {0.0272, 1.03, 176},
                                 .node = {0, 3.53},
                                 .form = {0.0415, 0.733},
                                 .tree_update = {0.0257, 0.752},
                                 .panel = {0.0212, 0.221, 252},
                                 .update = {0.027, 0.416},
                                 .scan = 0.764,
                                 .call = 240,
                                 .certificate = 937};
constexpr StepTimes f32_times = {.gram = {0.0208, 0.335},
                                 .solve = {0.00376, 0.0667},
                                 .square = {0.0173, 3.11, 528},
                                 .signed_lu = {0.0725, 19.6},
                                 .leaf = {0.0145, 0.853, 650},
                                 .node = {0, 0},
                                 .form = {0.0169, 0.36},
                                 .tree_update = {0.0141, 0.306},
                                 .panel = {0.0137, 0.13, 674},
                                 .update = {0.0132, 0.45},
                                 .scan = 0.452,
                                 .call = 0,
                                 .certificate = 1050};

}  // namespace

const StepTimes& Tuning<Host>::step_times(Index element_bytes) {
    return element_bytes == sizeof(float) ? f32_times : f64_times;
}

}  // namespace quoin
