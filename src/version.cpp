#include "quoin/version.hpp"

#include <dlfcn.h>

#include <string>
#include <string_view>

#include "host/kernels/kernels.hpp"

namespace quoin {

const char* version() { return QUOIN_VERSION; }

namespace {

/// What OpenBLAS says of itself, if it is the BLAS that was linked; "" otherwise. (Another BLAS may have it loaded too, for
/// its LAPACK.)
std::string ask_openblas(const char* function) {
    if (std::string_view(QUOIN_BLAS_NAME) != "OpenBLAS") return "";
    using Text = char* (*)();
    const auto ask = reinterpret_cast<Text>(dlsym(RTLD_DEFAULT, function));
    const char* answer = ask ? ask() : nullptr;
    return answer ? answer : "";
}

/// OpenBLAS chooses its kernels by the CPU's model number, and takes a model it does not know for an older one.
std::string outdated_kernels(const std::string& core) {
#if defined(__x86_64__)
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
    const bool avx2 = __builtin_cpu_supports("avx2");
    const auto is_one_of = [&](std::initializer_list<const char*> names) {
        for (const char* name : names) {
            if (core == name) return true;
        }
        return false;
    };
    const bool uses_avx512 = is_one_of({"SkylakeX", "Cooperlake", "SapphireRapids", "Zen4", "Zen5"});
    const bool uses_avx2 = uses_avx512 || is_one_of({"Haswell", "Zen", "Excavator"});
    if (avx512 && !uses_avx512) {
        return "this CPU has AVX-512, and OpenBLAS runs its '" + core +
               "' kernels, which have not: OPENBLAS_CORETYPE=SkylakeX in the environment chooses faster ones";
    }
    if (avx2 && !uses_avx2) {
        return "this CPU has AVX2, and OpenBLAS runs its '" + core +
               "' kernels, which have not: OPENBLAS_CORETYPE=Haswell in the environment chooses faster ones";
    }
#endif
    return "";
}

}  // namespace

const BuildInfo& build_info() {
    static const std::string config = ask_openblas("openblas_get_config");
    static const std::string core = ask_openblas("openblas_get_corename");
    static const std::string warning = core.empty() ? "" : outdated_kernels(core);
    static const BuildInfo info = {
#if defined(__clang__)
        "clang " __clang_version__,
#else
        "g++ " __VERSION__,
#endif
        host::kernels<double>().instruction_set,
        config.empty() ? QUOIN_BLAS_NAME : config.c_str(),
        core.c_str(),
        warning.c_str()
    };
    return info;
}

}  // namespace quoin
