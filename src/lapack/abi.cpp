#include "lapack/abi.hpp"

#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace quoin::lapack {

namespace {

/// Whether the environment variable is set, not empty and not "0"; `unset` where there is none.
bool flag(const char* variable, bool unset) {
    const char* value = std::getenv(variable);
    return value ? *value && std::strcmp(value, "0") != 0 : unset;
}

bool verbose() {
    static const bool asked = flag("QUOIN_VERBOSE", false);
    return asked;
}

/// Paths of the libraries of the process.
std::vector<std::string> loaded_libraries() {
    std::vector<std::string> paths;
    dl_iterate_phdr(
        [](dl_phdr_info* library, std::size_t, void* to) {
            static_cast<std::vector<std::string>*>(to)->emplace_back(library->dlpi_name);
            return 0;
        },
        &paths);
    return paths;
}

}  // namespace

void* next_symbol(const char* symbol) {
    if (void* next = dlsym(RTLD_NEXT, symbol)) return next;
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&next_symbol), &own);
    for (const std::string& path : loaded_libraries()) {
        void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (!library) continue;
        void* address = dlsym(library, symbol);
        dlclose(library);
        // a library that needs this one finds this one's
        Dl_info where{};
        if (address && dladdr(address, &where) && where.dli_fbase != own.dli_fbase) return address;
    }
    return nullptr;
}

bool may_pass_on() {
    static const bool allowed = flag("QUOIN_PASS_ON", true);
    return allowed;
}

template <class Int>
void report_illegal(const char* routine, Int argument) {
    using Xerbla = void(const char*, const Int*, std::size_t);
    static const auto xerbla = [] {
        // where the reference itself has 64-bit integers, so has its xerbla_
        void* address = sizeof(Int) == 8 ? dlsym(RTLD_DEFAULT, "xerbla_64_") : nullptr;
        return reinterpret_cast<Xerbla*>(address ? address : dlsym(RTLD_DEFAULT, "xerbla_"));
    }();
    if (xerbla) {
        xerbla(routine, &argument, std::strlen(routine));
    } else {
        std::fprintf(stderr, " ** On entry to %s parameter number %lld had an illegal value\n", routine,
                     static_cast<long long>(argument));
    }
}
template void report_illegal<std::int32_t>(const char*, std::int32_t);
template void report_illegal<std::int64_t>(const char*, std::int64_t);

Call::Call(const char* routine, Index m, Index n, Index k) : routine_(routine), m_(m), n_(n), k_(k) {
    if (verbose()) start_ = std::chrono::steady_clock::now();
}

Call::~Call() {
    if (!verbose()) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const std::string k = k_ < 0 ? "" : ", k " + std::to_string(k_);
    std::fprintf(stderr, "quoin: %s %lld x %lld%s: %s, %.3g s\n", routine_, static_cast<long long>(m_),
                 static_cast<long long>(n_), k.c_str(), method_, seconds);
}

}  // namespace quoin::lapack
