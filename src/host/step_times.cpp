// Fitted times of the steps of each method, for the choice of `Auto`.

#include "host/tuning.hpp"

namespace quoin {
namespace {

// The times were first fitted by least squares of relative errors: R, V tau R, Q and R, and QᵀC of 90 shapes by each
// method, 9×2 to 2 000 000×3 to 5000×420, the fastest of several runs on one core of an AMD EPYC 7003 with AVX2. A
// random search from there then looked for the times whose choices of methods lose least, on 1, 2, 4 and 16 cores with
// AVX-512; the last search used 2758 cases, including all of bench/results/regret_one_team.csv. A choice depends only
// on ratios of times. CholeskyQR2 counts as one pass.

constexpr StepTimes f64_times = {.gram = {0.0169, 0.406},
                                 .solve = {0.0217, 0.0373},
                                 .square = {0.0172, 6.68, 192},
                                 .signed_lu = {0.125, 12.3},
                                 .leaf = {0.0284, 1.06, 147},
                                 .node = {0, 3.51},
                                 .form = {0.0403, 0.727},
                                 .tree_update = {0.0257, 0.759},
                                 .panel = {0.0206, 0.22, 311},
                                 .update = {0.027, 0.416},
                                 .scan = 0.58,
                                 .call = 240,
                                 .certificate = 928};
constexpr StepTimes f32_times = {.gram = {0.0208, 0.333},
                                 .solve = {0.00297, 0.0553},
                                 .square = {0.0172, 3.08, 587},
                                 .signed_lu = {0.0735, 19.6},
                                 .leaf = {0.0145, 0.742, 652},
                                 .node = {0, 0},
                                 .form = {0.0169, 0.36},
                                 .tree_update = {0.0141, 0.304},
                                 .panel = {0.0137, 0.108, 674},
                                 .update = {0.0132, 0.45},
                                 .scan = 0.475,
                                 .call = 0,
                                 .certificate = 1610};

}  // namespace

const StepTimes& Tuning<Host>::step_times(ScalarKind scalar) { return *entry_for(scalar, &f32_times, &f64_times); }

}  // namespace quoin
