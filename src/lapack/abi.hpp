#pragma once

// What every exported routine does around its mathematics: argument errors, workspace sizes, the next LAPACK behind this
// one, and a line to stderr where QUOIN_VERBOSE asks for it. No exception leaves a routine.

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "quoin/context.hpp"

/// Exports ROUTINE(T, Int, prefix, suffix): s and d, with the integers of the reference (dgeqrf_) and with those of 64 bits
/// (dgeqrf_64_).
#define QUOIN_LAPACK_LP64(ROUTINE)     \
    ROUTINE(float, std::int32_t, s, _) \
    ROUTINE(double, std::int32_t, d, _)
#ifdef QUOIN_LAPACK_ILP64
#define QUOIN_LAPACK_EXPORT(ROUTINE)      \
    QUOIN_LAPACK_LP64(ROUTINE)            \
    ROUTINE(float, std::int64_t, s, _64_) \
    ROUTINE(double, std::int64_t, d, _64_)
#else
#define QUOIN_LAPACK_EXPORT QUOIN_LAPACK_LP64
#endif
/// "SGEQRF", as xerbla says it.
#define QUOIN_LAPACK_NAME_s(name) "S" name
#define QUOIN_LAPACK_NAME_d(name) "D" name
#define QUOIN_LAPACK_NAME(prefix, name) QUOIN_LAPACK_NAME_##prefix(name)
#define QUOIN_LAPACK_ABI extern "C" __attribute__((visibility("default")))

namespace quoin::lapack {

/// The routine of the same name behind this library, null where there is none. Call it once, for a static.
template <class F>
F* next_routine(F*, const char* symbol) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, symbol));
}

/// Fortran's xerbla of the process, or the reference's message where there is none. `argument` is one-based.
template <class Int>
void report_illegal(const char* routine, Int argument);

/// Whether the next LAPACK serves a call that it is faster at. QUOIN_PASS_ON=0 says no, for tests of Quoin's own code.
bool may_pass_on();

/// One line for QUOIN_VERBOSE=1, from its construction to its end.
class Call {
public:
    Call(const char* routine, Index m, Index n, Index k);
    ~Call();
    Call(const Call&) = delete;
    void by(const char* method) { method_ = method; }

private:
    const char* routine_;
    const char* method_ = "passed on";
    Index m_, n_, k_;
    std::chrono::steady_clock::time_point start_;
};

/// What LAPACKE returns where it finds no memory to work in; Fortran's LAPACK has no code for that.
inline constexpr int out_of_memory_info = -1010;

/// The size of a workspace as work(1) tells it: not below `size` after rounding to T.
template <class T>
T workspace_size(Index size) {
    const T rounded = static_cast<T>(size);
    return static_cast<Index>(rounded) < size ? rounded * (1 + std::numeric_limits<T>::epsilon()) : rounded;
}

/// Whether an argument of one letter is `letter`, in either case.
inline bool is(const char* argument, char letter) { return (*argument & ~0x20) == letter; }

/// Runs `compute(ctx)`, which returns the name of its method, unless `bytes` of workspace cannot be had before it begins:
/// then `pass_on`, if there is somewhere to pass it on to. Returns info.
template <class Int, class Compute, class PassOn>
Int serve(Call& call, const char* routine, double bytes, Compute compute, bool can_pass_on, PassOn pass_on) {
    try {
        try {
            detail::free_host(detail::allocate_host(static_cast<std::size_t>(bytes)));
        } catch (const OutOfMemory&) {
            if (can_pass_on) return pass_on();
            throw;
        }
        Context<Host> ctx;
        call.by(compute(ctx));
        return 0;
    } catch (...) {
        call.by("out of memory");
        report_illegal<Int>(routine, -out_of_memory_info);
        return out_of_memory_info;
    }
}

}  // namespace quoin::lapack
