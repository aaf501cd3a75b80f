#pragma once

// The kernel sets that are compiled for this processor family; dispatch.cpp picks one.

#include "host/kernels/kernels.hpp"

namespace quoin::host {
const Kernels<float>& baseline_kernels_f32();
const Kernels<double>& baseline_kernels_f64();
const Kernels<float>& neon_kernels_f32();
const Kernels<double>& neon_kernels_f64();
const Kernels<float>& sve256_kernels_f32();
const Kernels<double>& sve256_kernels_f64();
const Kernels<float>& avx2_kernels_f32();
const Kernels<double>& avx2_kernels_f64();
const Kernels<float>& avx512_kernels_f32();
const Kernels<double>& avx512_kernels_f64();
}  // namespace quoin::host
