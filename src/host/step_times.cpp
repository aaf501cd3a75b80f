#include "host/kernels/kernels.hpp"
#include "host/tuning.hpp"

namespace quoin {
namespace {

// By least squares of relative errors. With AVX2: R, V tau R, Q and R, and QᵀC of 50 shapes by each method, 9×2 to 300 000×3 to 5000×420,
// the fastest of a fifth of a second on one core of an AMD EPYC 7003; half of the modelled times are within 8% of the measured ones.
// With AVX-512: bench/results/xeon_regret.csv, two cores, whose times are taken as 1.8 times those of one; half are within 15%. The times
// of calls and columns are those of AVX2, and A R⁻¹ has its share of what it saved in place since. Narrower registers take the times of AVX2.

constexpr StepTimes avx2_f64 = {.gram = {0.034, 0.27},
                                .solve = {0.019, 0.081},
                                .square = {0.033, 3, 100},
                                .signed_lu = {0.11, 22},
                                .leaf = {0.026, 1.5, 280},
                                .node = {0, 5.1},
                                .form = {0.034, 0.68},
                                .tree_update = {0.028, 0.54},
                                .panel = {0.027, 0.5, 280},
                                .update = {0.026, 0.36},
                                .scan = 0.69,
                                .call = 480,
                                .certificate = 480};
constexpr StepTimes avx2_f32 = {.gram = {0.043, 0.26},
                                .solve = {0.0086, 0.11},
                                .square = {0.012, 6.9, 380},
                                .signed_lu = {0.073, 24},
                                .leaf = {0.015, 0.58, 520},
                                .node = {0, 0},
                                .form = {0.019, 0.29},
                                .tree_update = {0.014, 0.25},
                                .panel = {0.015, 0.17, 500},
                                .update = {0.013, 0.19},
                                .scan = 0.37,
                                .call = 0,
                                .certificate = 610};
constexpr StepTimes avx512_f64 = {.gram = {0.013, 0.065},
                                  .solve = {0.014, 0.34},
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
                                  .solve = {0.0085, 0.16},
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
