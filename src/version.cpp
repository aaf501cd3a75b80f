// Version of the library, and the names of its BLAS and instruction set.

#include "quoin/version.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "host/kernels/kernels.hpp"

namespace quoin {

const char* version() { return QUOIN_VERSION; }

namespace {

/// Returns the answer of OpenBLAS's `function`, if OpenBLAS is the linked BLAS; "" otherwise. (Another BLAS may load
/// OpenBLAS, too, for its LAPACK.)
std::string ask_openblas(const char* function) {
    if (std::string_view(QUOIN_BLAS_NAME) != "OpenBLAS") return "";
    using Text = char* (*)();
    const auto ask = reinterpret_cast<Text>(dlsym(RTLD_DEFAULT, function));
    const char* answer = ask ? ask() : nullptr;
    return answer ? answer : "";
}

/// Returns the CPU type whose kernels use the widest vectors of this CPU, if the kernels of `core` do not; ""
/// otherwise. OpenBLAS chooses its kernels by the CPU's model number, and mistakes an unknown model for an older one.
const char* better_than([[maybe_unused]] const std::string& core) {
#if defined(__x86_64__)
    const auto is_one_of = [&](std::initializer_list<const char*> names) {
        return std::find(names.begin(), names.end(), core) != names.end();
    };
    if (is_one_of({"", "SkylakeX", "Cooperlake", "SapphireRapids", "Zen4", "Zen5"})) return "";
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && !is_one_of({"Haswell", "Zen", "Excavator"})) return "Haswell";
#endif
    return "";
}

}  // namespace

const BuildInfo& build_info() {
    static const std::string config = ask_openblas("openblas_get_config");
    static const std::string core = ask_openblas("openblas_get_corename");
    static const std::string better = better_than(core);
    static const std::string warning = better.empty()
                                           ? ""
                                           : "this CPU has " + std::string(better == "SkylakeX" ? "AVX-512" : "AVX2") +
                                                 ", and OpenBLAS runs its '" + core +
                                                 "' kernels, which have not: OPENBLAS_CORETYPE=" + better +
                                                 " in the environment chooses faster ones";
    static const BuildInfo info = {
#if defined(__clang__)
        "clang " __clang_version__,
#else
        "g++ " __VERSION__,
#endif
        host::kernels<double>().instruction_set,
        config.empty() ? QUOIN_BLAS_NAME : config.c_str(),
        core.c_str(),
        warning.c_str(),
        better.c_str()
    };
    return info;
}

}  // namespace quoin
