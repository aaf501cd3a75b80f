// `couple` for each instruction set, and the choice among them.

#include "lyapunov/couple.hpp"

#include <string_view>

#include "host/kernels/kernels.hpp"

namespace quoin {
namespace {

namespace baseline {
#define QUOIN_TARGET
#define QUOIN_VECTOR_BYTES 16
#include "lyapunov/couple_pairs.hpp"
}  // namespace baseline

#if defined(__x86_64__)
namespace avx2 {
#define QUOIN_TARGET [[gnu::target("avx2,fma")]]
#define QUOIN_VECTOR_BYTES 32
#include "lyapunov/couple_pairs.hpp"
}  // namespace avx2

namespace avx512 {
#define QUOIN_TARGET [[gnu::target("avx512f,fma")]]
#define QUOIN_VECTOR_BYTES 64
#include "lyapunov/couple_pairs.hpp"
}  // namespace avx512
#endif

}  // namespace

void couple(std::span<const Coupling> pairs, int d, const double* X, double* F) {
#if defined(__x86_64__)
    const std::string_view set = host::kernels<double>().instruction_set;
    if (set == "avx512") return avx512::couple(pairs, d, X, F);
    if (set == "avx2") return avx2::couple(pairs, d, X, F);
#endif
    baseline::couple(pairs, d, X, F);
}

}  // namespace quoin
