#include "host/kernels/kernels.hpp"
#include "host/tuning.hpp"

namespace quoin {
namespace {

// By least squares of relative errors. With AVX2: R, V tau R, Q and R, and QᵀC of 50 shapes by each method, 9×2 to 300 000×3 to 5000×420,
// the fastest of a fifth of a second on one core of an AMD EPYC 7003; half of the modelled times are within 9% of the measured ones.
// With AVX-512: bench/results/xeon_regret.csv, two cores, whose times are taken as 1.8 times those of one; half are within 15%. The times
// of calls and columns are those of AVX2. Narrower registers take the times of AVX2.

constexpr StepTimes avx2_f64 = {.gram = {0.028, 0},
                                .solve = {0.032, 0.74},
                                .square = {0.016, 4.4, 68},
                                .signed_lu = {0.059, 24},
                                .leaf = {0.026, 1.3, 290},
                                .node = {0, 5.1},
                                .form = {0.033, 0.87},
                                .tree_update = {0.028, 0.57},
                                .panel = {0.025, 0.4, 320},
                                .update = {0.027, 0.43},
                                .scan = 0.87,
                                .call = 400,
                                .certificate = 680};
constexpr StepTimes avx2_f32 = {.gram = {0.043, 0.29},
                                .solve = {0.011, 0.4},
                                .square = {0.0082, 7.2, 360},
                                .signed_lu = {0.046, 24},
                                .leaf = {0.015, 0.55, 520},
                                .node = {0, 0},
                                .form = {0.018, 0.37},
                                .tree_update = {0.014, 0.27},
                                .panel = {0.016, 0.09, 520},
                                .update = {0.012, 0.26},
                                .scan = 0.38,
                                .call = 0,
                                .certificate = 600};
constexpr StepTimes avx512_f64 = {.gram = {0.013, 0.065},
                                  .solve = {0.014, 0.98},
                                  .square = {0, 24, 130},
                                  .signed_lu = {0.023, 52},
                                  .leaf = {0.02, 1.4, 270},
                                  .node = {0, 0},
                                  .form = {0.021, 1.1},
                                  .tree_update = {0.006, 3.3},
                                  .panel = {0.019, 1.9, 270},
                                  .update = {0, 4.7},
                                  .scan = 0.89,
                                  .call = 540,
                                  .certificate = 720};
constexpr StepTimes avx512_f32 = {.gram = {0.022, 0.58},
                                  .solve = {0.0085, 0.45},
                                  .square = {0, 36, 360},
                                  .signed_lu = {0, 42},
                                  .leaf = {0.012, 0.55, 450},
                                  .node = {0.0027, 0},
                                  .form = {0.012, 0.55},
                                  .tree_update = {0.0036, 1.8},
                                  .panel = {0.012, 1.3, 450},
                                  .update = {0.00053, 2.5},
                                  .scan = 0.35,
                                  .call = 360,
                                  .certificate = 720};

}  // namespace

const StepTimes& Tuning<Host>::step_times(Index element_bytes) {
    const bool single = element_bytes == sizeof(float);
    const bool avx512 = host::kernels<float>().lanes >= 16;
    return avx512 ? (single ? avx512_f32 : avx512_f64) : single ? avx2_f32 : avx2_f64;
}

}  // namespace quoin
