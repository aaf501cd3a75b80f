// Chooses the fastest set of kernels that this processor runs.

#if defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "host/kernels/isa.hpp"

namespace quoin::host {
namespace {

struct KernelSet {
    const char* name;
    bool runs;  ///< on this processor
    const Kernels<float>& (*f32)();
    const Kernels<double>& (*f64)();
};

#if defined(__aarch64__)
/// Returns the bytes of a register of SVE; 0 without SVE.
int sve_bytes() { return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0 ? prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK : 0; }
#endif

/// Returns the first set that runs, from the one on that QUOIN_KERNELS names. Names of a GPU's kernels change nothing.
KernelSet choose() {
    const KernelSet newest_first[] = {
#if defined(__x86_64__)
        {"avx512",
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"),
         avx512_kernels_f32, avx512_kernels_f64},
        {"avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), avx2_kernels_f32, avx2_kernels_f64},
#elif defined(__aarch64__)
        {"sve256", sve_bytes() == 32, sve256_kernels_f32, sve256_kernels_f64},
        {"neon", true, neon_kernels_f32, neon_kernels_f64},
#endif
        {"baseline", true, baseline_kernels_f32, baseline_kernels_f64},
    };
    const char* const wish = std::getenv("QUOIN_KERNELS");
    const KernelSet* first = std::find_if(std::begin(newest_first), std::end(newest_first), [&](const KernelSet& set) {
        return wish && std::strcmp(wish, set.name) == 0;
    });
    if (first == std::end(newest_first)) first = newest_first;
    return *std::find_if(first, std::end(newest_first), [](const KernelSet& set) { return set.runs; });
}

const KernelSet& chosen() {
    static const KernelSet set = choose();
    return set;
}

}  // namespace

template <>
const Kernels<float>& kernels<float>() {
    static const Kernels<float>& set = chosen().f32();
    return set;
}
template <>
const Kernels<double>& kernels<double>() {
    static const Kernels<double>& set = chosen().f64();
    return set;
}

}  // namespace quoin::host
