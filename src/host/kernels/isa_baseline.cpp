// The kernels for every processor of the architecture.

#define QUOIN_ISA "baseline"
#define QUOIN_VECTOR_BYTES 16
#define QUOIN_INNER_M 3
#define QUOIN_INNER_N 4
#define QUOIN_OUTER_V 3
#define QUOIN_OUTER_N 4
#include "host/kernels/isa.hpp"
#include "host/kernels/microkernels.hpp"

namespace quoin::host {
const Kernels<float>& baseline_kernels_f32() { return kernel_set<float>; }
const Kernels<double>& baseline_kernels_f64() { return kernel_set<double>; }
}  // namespace quoin::host
