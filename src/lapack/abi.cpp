#include "lapack/abi.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

}  // namespace

bool may_pass_on() {
    static const bool allowed = flag("QUOIN_PASS_ON", true);
    return allowed;
}

template <class Int>
void report_illegal(const char* routine, Int argument) {
    using Xerbla = void(const char*, const Int*, std::size_t);
    static const auto xerbla =
        reinterpret_cast<Xerbla*>(dlsym(RTLD_DEFAULT, sizeof(Int) == 8 ? "xerbla_64_" : "xerbla_"));
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
    std::fprintf(stderr, "quoin: %s %lld x %lld, k %lld: %s, %.3g s\n", routine_, static_cast<long long>(m_),
                 static_cast<long long>(n_), static_cast<long long>(k_), method_, seconds);
}

}  // namespace quoin::lapack
