// The kernels for AVX-512.

#define QUOIN_ISA "avx512"
#define QUOIN_VECTOR_BYTES 64
#define QUOIN_INNER_M 4
#define QUOIN_INNER_N 6
#define QUOIN_OUTER_V 3
#define QUOIN_OUTER_N 8
#include "host/kernels/isa.hpp"
#include "host/kernels/microkernels.hpp"

namespace quoin::host {
const Kernels<float>& avx512_kernels_f32() { return kernel_set<float>; }
const Kernels<double>& avx512_kernels_f64() { return kernel_set<double>; }
}  // namespace quoin::host
