#pragma once

// What every exported routine does around its mathematics: argument errors, workspace sizes, the next LAPACK behind this
// one, and a line to stderr where QUOIN_VERBOSE asks for it. No exception leaves a routine.

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <type_traits>

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
/// any library that the process has loaded for itself alone, as Python does with a wheel's. The library stays loaded from then on,
/// so that the address stays valid.
void* next_symbol(const char* symbol);
/// `next_symbol` as a routine of Fortran's: as `routine`, but that the lengths of the letters, one each, come after the arguments.
/// The exports of this library do not declare these lengths: C callers do not pass them, so their place on the stack is not ours.
template <class Result, class... Argument>
auto next_routine(Result (*)(Argument...), const char* symbol) {
    constexpr int letters = (0 + ... + std::is_same_v<Argument, const char*>);
    void* const next = next_symbol(symbol);
    if constexpr (letters == 0) return reinterpret_cast<Result (*)(Argument...)>(next);
    if constexpr (letters == 1) return reinterpret_cast<Result (*)(Argument..., std::size_t)>(next);
    if constexpr (letters == 2) return reinterpret_cast<Result (*)(Argument..., std::size_t, std::size_t)>(next);
}

/// Fortran's xerbla of the program or of its LAPACK, or the reference's message where there is none. `argument` is one-based.
template <class Int>
void report_illegal(const char* routine, Int argument);

/// Whether the next LAPACK serves a call that it is faster at. QUOIN_PASS_ON=0 says no, for tests of Quoin's own code.
bool may_pass_on();

/// Threads of a call: what OpenMP would take, at most OPENBLAS_NUM_THREADS and MKL_NUM_THREADS where they are set, and one in a
/// thread made by `fork`.
int threads();

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

/// What LAPACKE returns where it finds no memory to work in, and what a call returns that fails otherwise; Fortran's LAPACK has no
/// code for either.
inline constexpr int out_of_memory_info = -1010, failure_info = -1000;
/// Says on stderr why a call failed, tells xerbla, and returns info.
template <class Int>
Int report_failure(const char* routine, const std::exception& failure);

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
/// `pass_on`, which calls it, where there is one and Quoin does not pay or finds less than `bytes()` of memory before it begins.
template <class Int, class Bytes, class Compute, class Next, class PassOn>
void serve(Call&& call, bool pays, Bytes bytes, Compute compute, Next* next, PassOn pass_on, Int* info) {
    if (next && may_pass_on() && !pays) return pass_on();
    try {
        try {
            detail::free_host(detail::allocate_host(static_cast<std::size_t>(std::min(bytes(), 0x1p63))));
        } catch (const OutOfMemory&) {
            if (next) return pass_on();
            throw;
        }
        Context<Host> ctx(threads());
        *info = 0;
        call.by(compute(ctx));
    } catch (const std::exception& failure) {
        call.by("failed");
        *info = report_failure<Int>(call.routine(), failure);
    }
}

}  // namespace quoin::lapack
