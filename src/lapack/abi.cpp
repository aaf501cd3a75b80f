#include "lapack/abi.hpp"

#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "host/parallel.hpp"

namespace quoin::lapack {

namespace {

/// Whether the environment variable is set, not empty and not "0"; `unset` if it is not set.
bool flag(const char* variable, bool unset) {
    const char* value = std::getenv(variable);
    return value ? *value && std::strcmp(value, "0") != 0 : unset;
}

bool verbose() {
    static const bool asked = flag("QUOIN_VERBOSE", false);
    return asked;
}

/// Counts of the calls by routine, which the destructor prints if QUOIN_REPORT is set. A process without calls prints
/// only if QUOIN_REPORT is its number.
class Report {
public:
    void add(const char* routine, bool passed_on) {
        if (!asked_) return;
        const std::lock_guard lock(mutex_);
        ++(passed_on ? counts_[routine].passed_on : counts_[routine].computed);
    }
    ~Report() {
        if (!asked_ || (counts_.empty() && std::atol(asked_) != getpid())) return;
        std::string text =
            "quoin: calls of LAPACK in process " + std::to_string(getpid()) + (counts_.empty() ? ": none" : ":");
        for (const auto& [routine, count] : counts_) {
            text += "\nquoin:   " + routine + ": " + std::to_string(count.computed) + " computed by Quoin, " +
                    std::to_string(count.passed_on) + " passed on";
        }
        std::fprintf(stderr, "%s\n", text.c_str());
    }

private:
    struct Count {
        long computed = 0, passed_on = 0;
    };
    const char* asked_ = flag("QUOIN_REPORT", false) ? std::getenv("QUOIN_REPORT") : nullptr;
    std::mutex mutex_;
    std::map<std::string, Count> counts_;
};
Report report;

/// Returns the paths of the libraries of the process.
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
    // the handles of libraries in use are never closed: a library with an open handle stays loaded when the program
    // closes it
    Dl_info own{}, where{};
    if (void* next = dlsym(RTLD_NEXT, symbol)) {
        if (dladdr(next, &where)) dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        return next;
    }
    dladdr(reinterpret_cast<void*>(&next_symbol), &own);
    for (const std::string& path : loaded_libraries()) {
        void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (!library) continue;
        void* address = dlsym(library, symbol);
        // dlsym in a library that depends on this one finds this one's symbol
        if (address && dladdr(address, &where) && where.dli_fbase != own.dli_fbase) return address;
        dlclose(library);
    }
    return nullptr;
}

bool may_pass_on() {
    static const bool allowed = flag("QUOIN_PASS_ON", true);
    return allowed;
}

int threads() {
    static const int most = [] {
        long least = Context<Host>(std::numeric_limits<int>::max()).threads();  // the most that a context takes
        for (const char* variable : {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
            const char* value = std::getenv(variable);
            const long count = value ? std::strtol(value, nullptr, 10) : 0;
            if (count > 0) least = std::min(least, count);
        }
        return static_cast<int>(least);
    }();
    return host::forked() ? 1 : std::min(most, host::default_threads());
}

template <class Int>
void report_illegal(const char* routine, Int argument) {
    using Xerbla = void(const char*, const Int*, std::size_t);
    static const auto xerbla = [] {
        void* address = nullptr;
        const auto find = [&](const char* symbol) {
            if (!address) address = dlsym(RTLD_DEFAULT, symbol);
            if (!address) address = next_symbol(symbol);
        };
        // a reference with 64-bit integers has them in its xerbla_, too
        find(sizeof(Int) == 8 ? "xerbla_64_" : "xerbla_");
        find(sizeof(Int) == 8 ? "scipy_xerbla_64_" : "scipy_xerbla_");
        if (sizeof(Int) == 8) find("xerbla_");
        return reinterpret_cast<Xerbla*>(address);
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

template <class Int>
Int report_failure(const char* routine, const std::exception& failure) {
    const bool memory = dynamic_cast<const OutOfMemory*>(&failure) || dynamic_cast<const std::bad_alloc*>(&failure);
    const int info = memory ? out_of_memory_info : failure_info;
    std::fprintf(stderr, "quoin: %s: %s\n", routine, failure.what());
    report_illegal<Int>(routine, -info);
    return info;
}
template std::int32_t report_failure<std::int32_t>(const char*, const std::exception&);
template std::int64_t report_failure<std::int64_t>(const char*, const std::exception&);

Call::Call(const char* routine, Index m, Index n, Index k) : routine_(routine), m_(m), n_(n), k_(k) {
    if (verbose()) start_ = std::chrono::steady_clock::now();
}

Call::~Call() {
    report.add(routine_, method_ == passed_on);
    if (!verbose()) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const std::string k = k_ < 0 ? "" : ", k " + std::to_string(k_);
    std::fprintf(stderr, "quoin: %s %lld x %lld%s: %s, %.3g s\n", routine_, static_cast<long long>(m_),
                 static_cast<long long>(n_), k.c_str(), method_, seconds);
}

}  // namespace quoin::lapack
