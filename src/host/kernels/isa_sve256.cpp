// The kernels for SVE on processors whose registers have 256 bits.

#define QUOIN_ISA "sve256"
#define QUOIN_VECTOR_BYTES 32
#define QUOIN_INNER_M 3
#define QUOIN_INNER_N 6
#define QUOIN_OUTER_V 3
#define QUOIN_OUTER_N 6
#include "host/kernels/isa.hpp"
#include "host/kernels/microkernels.hpp"

namespace quoin::host {
const Kernels<float>& sve256_kernels_f32() { return kernel_set<float>; }
const Kernels<double>& sve256_kernels_f64() { return kernel_set<double>; }
}  // namespace quoin::host
