#pragma once

#include "quoin/scalar.hpp"

namespace quoin::cli {

/// Rates of this machine, measured now with the threads in use.
struct MachineLimits {
    double gemm_f32 = 0;        ///< flop/s of cblas_sgemm, 2048³; 0 if not measured
    double gemm_f64 = 0;        ///< flop/s of cblas_dgemm, 2048³; 0 if not measured
    double arithmetic_f32 = 0;  ///< flop/s of the faster of sgemm and Quoin's kernels in cache; 0 if not measured
    double arithmetic_f64 = 0;  ///< flop/s of the faster of dgemm and Quoin's kernels in cache; 0 if not measured
    double copy = 0;            ///< bytes read and written a second by a large copy

    double arithmetic(ScalarKind dtype) const { return entry_for(dtype, arithmetic_f32, arithmetic_f64); }
};

MachineLimits measure_machine_limits(bool f32, bool f64);

}  // namespace quoin::cli
