// Chooses the fastest set of kernels that this processor runs.

#include <cstdlib>
#include <cstring>

#include "host/kernels/isa.hpp"

namespace quoin::host {
namespace {

enum class InstructionSet { Baseline, AVX2, AVX512 };

InstructionSet newest_supported() {
#if defined(__x86_64__)
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const char* wish = std::getenv("QUOIN_KERNELS");
    if (wish && std::strcmp(wish, "plain") == 0) wish = nullptr;  // a GPU's
    if (avx512 && (!wish || std::strcmp(wish, "avx512") == 0)) return InstructionSet::AVX512;
    if (avx2 && (!wish || std::strcmp(wish, "baseline") != 0)) return InstructionSet::AVX2;
#endif
    return InstructionSet::Baseline;
}

template <class T>
const Kernels<T>& pick(const Kernels<T>& (*baseline)(), [[maybe_unused]] const Kernels<T>& (*avx2)(),
                       [[maybe_unused]] const Kernels<T>& (*avx512)()) {
    switch (newest_supported()) {
        case InstructionSet::AVX512: return avx512();
        case InstructionSet::AVX2: return avx2();
        case InstructionSet::Baseline: break;
    }
    return baseline();
}

}  // namespace

#if defined(__x86_64__)
template <>
const Kernels<float>& kernels<float>() {
    static const Kernels<float>& set = pick<float>(baseline_kernels_f32, avx2_kernels_f32, avx512_kernels_f32);
    return set;
}
template <>
const Kernels<double>& kernels<double>() {
    static const Kernels<double>& set = pick<double>(baseline_kernels_f64, avx2_kernels_f64, avx512_kernels_f64);
    return set;
}
#else
template <>
const Kernels<float>& kernels<float>() {
    return baseline_kernels_f32();
}
template <>
const Kernels<double>& kernels<double>() {
    return baseline_kernels_f64();
}
#endif

}  // namespace quoin::host
