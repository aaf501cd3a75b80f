// The kernels for NEON, whose 32 registers hold larger tiles than the baseline's.

#define QUOIN_ISA "neon"
#define QUOIN_VECTOR_BYTES 16
#define QUOIN_INNER_M 3
#define QUOIN_INNER_N 6
#define QUOIN_OUTER_V 3
#define QUOIN_OUTER_N 6
#include "host/kernels/isa.hpp"
#include "host/kernels/microkernels.hpp"

namespace quoin::host {
const Kernels<float>& neon_kernels_f32() { return kernel_set<float>; }
const Kernels<double>& neon_kernels_f64() { return kernel_set<double>; }
}  // namespace quoin::host
