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

#include "quoin/qr.hpp"

/// Exports ROUTINE(T, Int, p, before, after) under the names that LAPACKs have in the wild: s and d, dgeqrf_ of the
/// reference, dgeqrf_64_ with 64-bit integers, and scipy_dgeqrf_ and scipy_dgeqrf_64_ of the OpenBLAS in SciPy's and NumPy's
/// wheels. In an ILP64 build the name of the reference takes 64-bit integers.
#ifdef QUOIN_ILP64
#define QUOIN_LAPACK_INTEGER std::int64_t
#else
#define QUOIN_LAPACK_INTEGER std::int32_t
#endif
#define QUOIN_LAPACK_EXPORT_AS(ROUTINE, Int, before, after) \
    ROUTINE(float, Int, s, before, after)                   \
    ROUTINE(double, Int, d, before, after)
#define QUOIN_LAPACK_EXPORT(ROUTINE)                           \
    QUOIN_LAPACK_EXPORT_AS(ROUTINE, QUOIN_LAPACK_INTEGER, , _) \
    QUOIN_LAPACK_EXPORT_AS(ROUTINE, std::int64_t, , _64_)      \
    QUOIN_LAPACK_EXPORT_AS(ROUTINE, std::int32_t, scipy_, _)   \
    QUOIN_LAPACK_EXPORT_AS(ROUTINE, std::int64_t, scipy_, _64_)
/// The routine of the same name behind this one; for a static.
#define QUOIN_LAPACK_NEXT(symbol) next_routine(&symbol, #symbol)
/// "SGEQRF", as xerbla says it.
#define QUOIN_LAPACK_NAME_s(name) "S" name
#define QUOIN_LAPACK_NAME_d(name) "D" name
#define QUOIN_LAPACK_NAME(prefix, name) QUOIN_LAPACK_NAME_##prefix(name)
#define QUOIN_LAPACK_ABI extern "C" __attribute__((visibility("default")))

namespace quoin::lapack {

/// The address of `symbol` behind this library, null where there is none: in the order of the loader (RTLD_NEXT), else in
/// any library that the process has loaded for itself alone, as Python does with a wheel's.
void* next_symbol(const char* symbol);
template <class F>
F* next_routine(F*, const char* symbol) {
    return reinterpret_cast<F*>(next_symbol(symbol));
}

/// Fortran's xerbla of the process, or the reference's message where there is none. `argument` is one-based.
template <class Int>
void report_illegal(const char* routine, Int argument);

/// Whether the next LAPACK serves a call that it is faster at. QUOIN_PASS_ON=0 says no, for tests of Quoin's own code.
bool may_pass_on();

/// One line for QUOIN_VERBOSE=1, from its construction to its end.
class Call {
public:
    Call(const char* routine, Index m, Index n, Index k = -1);  ///< k = -1: the routine has none
    ~Call();
    Call(const Call&) = delete;
    void by(const char* method) { method_ = method; }
    const char* routine() const { return routine_; }

private:
    const char* routine_;
    const char* method_ = "passed on";
    Index m_, n_, k_;
    std::chrono::steady_clock::time_point start_;
};

/// Where ?lamtsqr and ?gemqr must not be passed on: the reference takes row blocks of order < mb < max(m, n) rows for several,
/// and from the right writes m·nb numbers into the mb·nb of `work` that it asks for.
inline bool reference_fails(bool left, Index m, Index order, Index mb) { return mb > order || (!left && mb < m); }

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
inline Side side_of(const char* side) { return is(side, 'L') ? Side::Left : Side::Right; }
inline Op op_of(const char* trans) { return is(trans, 'N') ? Op::None : Op::Transpose; }

/// Runs `compute(ctx)`, which returns the name of its method and may set info, where Quoin is the faster one or there is no `next` routine, and
/// `pass_on`, which calls it, where there is one and Quoin does not pay or finds less than `bytes` of memory before it begins.
template <class Int, class Compute, class Next, class PassOn>
void serve(Call&& call, bool pays, double bytes, Compute compute, Next* next, PassOn pass_on, Int* info) {
    if (next && may_pass_on() && !pays) return pass_on();
    try {
        try {
            detail::free_host(detail::allocate_host(static_cast<std::size_t>(bytes)));
        } catch (const OutOfMemory&) {
            if (next) return pass_on();
            throw;
        }
        Context<Host> ctx;
        *info = 0;
        call.by(compute(ctx));
    } catch (...) {
        call.by("out of memory");
        *info = out_of_memory_info;
        report_illegal<Int>(call.routine(), -out_of_memory_info);
    }
}

}  // namespace quoin::lapack
