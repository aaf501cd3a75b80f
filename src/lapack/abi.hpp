#pragma once

// Work of every exported routine around its mathematics: argument errors, workspace sizes, calls of the next LAPACK
// after this library, a line to stderr if QUOIN_VERBOSE is set, and counts at the end if QUOIN_REPORT is set.
// No exception leaves a routine.

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
/// reference, dgeqrf_64_ with 64-bit integers, and scipy_dgeqrf_ and scipy_dgeqrf_64_ of the OpenBLAS in SciPy's and
/// NumPy's wheels. In an ILP64 build the name of the reference takes 64-bit integers.
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
/// Finds the next routine of the same name after this library's, to initialise a static.
#define QUOIN_LAPACK_NEXT(symbol) next_routine(&symbol, #symbol)
/// The name for xerbla, "SGEQRF".
#define QUOIN_LAPACK_NAME_s(name) "S" name
#define QUOIN_LAPACK_NAME_d(name) "D" name
#define QUOIN_LAPACK_NAME(prefix, name) QUOIN_LAPACK_NAME_##prefix(name)
#define QUOIN_LAPACK_ABI extern "C" __attribute__((visibility("default")))

namespace quoin::lapack {

/// Returns the next address of `symbol` after this library, or null if there is none. It looks in the loader's order
/// (RTLD_NEXT), then in all libraries that the process has loaded with local scope, as Python does with a wheel's. The
/// library then stays loaded, so the address stays valid.
void* next_symbol(const char* symbol);
/// Returns `next_symbol` as a Fortran routine: its type is the given routine's, with the lengths of the letters, one
/// each, after the arguments. The exports of this library do not declare these lengths: C callers do not pass them, so
/// their place on the stack is not ours.
template <class Result, class... Argument>
auto next_routine(Result (*)(Argument...), const char* symbol) {
    constexpr int letters = (0 + ... + std::is_same_v<Argument, const char*>);
    void* const next = next_symbol(symbol);
    if constexpr (letters == 0) return reinterpret_cast<Result (*)(Argument...)>(next);
    if constexpr (letters == 1) return reinterpret_cast<Result (*)(Argument..., std::size_t)>(next);
    if constexpr (letters == 2) return reinterpret_cast<Result (*)(Argument..., std::size_t, std::size_t)>(next);
}

/// Calls Fortran's xerbla of the program or of its LAPACK, or prints the reference's message if there is none.
/// `argument` is one-based.
template <class Int>
void report_illegal(const char* routine, Int argument);

/// Whether calls are passed on to the next LAPACK if it is faster. QUOIN_PASS_ON=0 disables it, for tests of Quoin's
/// own code.
bool may_pass_on();

/// Returns the threads of a call: OpenMP's number, at most OPENBLAS_NUM_THREADS and MKL_NUM_THREADS if they are set,
/// and 1 in a thread that `fork` made.
int threads();

/// One line for QUOIN_VERBOSE=1, from its construction to its end, and one more in the counts for QUOIN_REPORT.
class Call {
public:
    Call(const char* routine, Index m, Index n, Index k = -1);  ///< k = -1: the routine has none
    ~Call();
    Call(const Call&) = delete;
    void by(const char* method) { method_ = method; }
    const char* routine() const { return routine_; }

private:
    static constexpr const char* passed_on = "passed on";
    const char* routine_;
    const char* method_ = passed_on;
    Index m_, n_, k_;
    std::chrono::steady_clock::time_point start_;
};

/// Whether ?lamtsqr and ?gemqr must not be passed on. With order < mb < max(m, n) the reference assumes several row
/// blocks. From the right it writes m·nb numbers to `work`, but requires only mb·nb.
inline bool reference_fails(bool left, Index m, Index order, Index mb) { return mb > order || (!left && mb < m); }

/// LAPACKE's info for missing work memory, and the info of a call that fails otherwise. Fortran's LAPACK has no code
/// for either.
inline constexpr int out_of_memory_info = -1010, failure_info = -1000;
/// Prints the reason for a failed call to stderr, calls xerbla, and returns info.
template <class Int>
Int report_failure(const char* routine, const std::exception& failure);

/// Returns the size of a workspace for work(1): rounded to T, but not below `size`.
template <class T>
T workspace_size(Index size) {
    const T rounded = static_cast<T>(size);
    return static_cast<Index>(rounded) < size ? rounded * (1 + std::numeric_limits<T>::epsilon()) : rounded;
}

/// The factorization of a routine: A = Q R, or A = L Q, whose Qᵀ is the Q of Aᵀ.
enum class Of { QR, LQ };

/// Whether an argument of one letter is `letter`, in either case.
inline bool is(const char* argument, char letter) { return (*argument & ~0x20) == letter; }
inline Side side_of(const char* side) { return is(side, 'L') ? Side::Left : Side::Right; }
inline Op op_of(const char* trans) { return is(trans, 'N') ? Op::None : Op::Transpose; }

/// Runs `compute(ctx)` or `pass_on`, which calls the `next` routine. It passes a call on if there is a `next` routine,
/// and Quoin does not pay or cannot allocate `bytes()` of memory before it begins. `compute` returns the name of its
/// method and may set info.
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
