#include "host/kernels/kernels.hpp"
#include "host/tuning.hpp"

namespace quoin {
namespace {

// By least squares of relative errors. With AVX2: R, V tau R, Q and R, and QᵀC of 90 shapes by each method, 9×2 to 2 000 000×3 to
// 5000×420, the fastest of several runs on one core of an AMD EPYC 7003; half of the modelled times are within 8% of the measured ones.
// 40 of the shapes are those of bench/results/epyc_7003_regret.csv. With AVX-512: bench/results/xeon_regret.csv, two cores, whose times
// are taken as 1.8 times those of one; half are within 15%. The times of calls and columns are those of AVX2, and A R⁻¹ has the share
// that it saved since by working in place. Narrower registers take the times of AVX2.

constexpr StepTimes avx2_f64 = {.gram = {0.032, 0.31},
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
constexpr StepTimes avx2_f32 = {.gram = {0.043, 0.32},
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
