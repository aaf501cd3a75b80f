#include "host/kernels/kernels.hpp"
#include "host/tuning.hpp"

namespace quoin {
namespace {

// By least squares of relative errors. With AVX2: R, V tau R, Q and R, and QᵀC of 50 shapes by each method, 9×2 to 300 000×3 to 5000×420,
// the fastest of an eighth of a second on one core of an AMD EPYC 7003; half of the modelled times are within 8% of the measured ones.
// With AVX-512: bench/results/xeon_regret.csv, two cores, whose times are taken as 1.8 times those of one; half are within 15%. The times
// of calls and columns are those of AVX2, and A R⁻¹ has its share of what it saved in place since. Narrower registers take the times of AVX2.

constexpr StepTimes avx2_f64 = {.gram = {0.034, 0.27},
                                .solve = {0.018, 0.1},
                                .square = {0.021, 4.7, 64},
                                .signed_lu = {0.16, 18},
                                .leaf = {0.028, 1.3, 300},
                                .node = {0, 2.5},
                                .form = {0.037, 0.53},
                                .tree_update = {0.027, 0.57},
                                .panel = {0.028, 0.53, 290},
                                .update = {0.024, 0.38},
                                .scan = 0.67,
                                .call = 400,
                                .certificate = 780};
constexpr StepTimes avx2_f32 = {.gram = {0.043, 0.29},
                                .solve = {0.0087, 0.079},
                                .square = {0.0088, 7.4, 310},
                                .signed_lu = {0.057, 22},
                                .leaf = {0.015, 0.6, 520},
                                .node = {0, 0},
                                .form = {0.018, 0.28},
                                .tree_update = {0.014, 0.13},
                                .panel = {0.016, 0.19, 500},
                                .update = {0.013, 0.15},
                                .scan = 0.36,
                                .call = 0,
                                .certificate = 780};
constexpr StepTimes avx512_f64 = {.gram = {0.013, 0.067},
                                  .solve = {0.014, 0.34},
                                  .square = {0, 25, 130},
                                  .signed_lu = {0.025, 52},
                                  .leaf = {0.02, 1.4, 270},
                                  .node = {0, 0},
                                  .form = {0.021, 1.1},
                                  .tree_update = {0.006, 3.3},
                                  .panel = {0.019, 1.9, 270},
                                  .update = {0, 4.7},
                                  .scan = 0.89,
                                  .call = 540,
                                  .certificate = 470};
constexpr StepTimes avx512_f32 = {.gram = {0.022, 0.59},
                                  .solve = {0.0085, 0.16},
                                  .square = {0, 36, 360},
                                  .signed_lu = {0, 42},
                                  .leaf = {0.012, 0.56, 450},
                                  .node = {0.0027, 0},
                                  .form = {0.012, 0.54},
                                  .tree_update = {0.0036, 1.8},
                                  .panel = {0.012, 1.4, 450},
                                  .update = {0.00055, 2.5},
                                  .scan = 0.34,
                                  .call = 180,
                                  .certificate = 540};

}  // namespace

const StepTimes& Tuning<Host>::step_times(Index element_bytes) {
    const bool single = element_bytes == sizeof(float);
    const bool avx512 = host::kernels<float>().lanes >= 16;
    return avx512 ? (single ? avx512_f32 : avx512_f64) : single ? avx2_f32 : avx2_f64;
}

}  // namespace quoin
