// The kernels for AVX2.

#define QUOIN_ISA "avx2"
#define QUOIN_VECTOR_BYTES 32
#define QUOIN_INNER_M 3
#define QUOIN_INNER_N 4
#define QUOIN_OUTER_V 3
#define QUOIN_OUTER_N 4
#include "host/kernels/isa.hpp"
#include "host/kernels/microkernels.hpp"

namespace quoin::host {
const Kernels<float>& avx2_kernels_f32() { return kernel_set<float>; }
const Kernels<double>& avx2_kernels_f64() { return kernel_set<double>; }
}  // namespace quoin::host
