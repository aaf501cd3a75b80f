#pragma once

// Work of every exported routine around its mathematics: argument errors, workspace sizes, calls of the next LAPACK
// after this library, a line to stderr if QUOIN_VERBOSE is set, and counts at the end if QUOIN_REPORT is set.
// No exception leaves a routine.

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

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
#define QUOIN_LAPACK_ABI extern "C" __attribute__((visibility("default")))
/// Defines `routine` with `parameters`. It calls function(name for xerbla, such as "SGEQRF", pass_on, arguments). Both
/// lists are in parentheses; p, before and after follow them.
#define QUOIN_LAPACK_ROUTINE(...) QUOIN_LAPACK_ROUTINE_AS(__VA_ARGS__)
#define QUOIN_LAPACK_ROUTINE_AS(routine, function, parameters, arguments, p, before, after) \
    QUOIN_LAPACK_ABI void before##p##routine##after parameters {                            \
        static void* const next = next_symbol(#before #p #routine #after);                  \
        static constexpr auto name = in_capitals(#p #routine);                              \
        std::apply(                                                                         \
            [](auto... given) {                                                             \
                function(name.data(), PassOn{next, std::tuple(given...)}, given...);        \
            },                                                                              \
            std::tuple arguments);                                                          \
    }

namespace quoin::lapack {

/// Returns the next address of `symbol` after this library, or null if there is none. It looks in the loader's order
/// (RTLD_NEXT), then in all libraries that the process has loaded with local scope, as Python does with a wheel's. The
/// library then stays loaded, so the address stays valid.
void* next_symbol(const char* symbol);
/// A call of the `next` routine with the caller's arguments and the lengths of the letters, one each, after them. The
/// exports of this library do not declare these lengths: C callers do not pass them, so their place on the stack is not
/// ours.
template <class... Argument>
struct PassOn {
    void* next;  ///< null: there is none
    std::tuple<Argument...> arguments;

    void operator()() const {
        const auto call = [&]<std::size_t... letter>(std::index_sequence<letter...>) {
            const auto routine = reinterpret_cast<void (*)(Argument..., decltype(letter)...)>(next);
            std::apply([&](Argument... argument) { routine(argument..., (void(letter), std::size_t{1})...); },
                       arguments);
        };
        call(std::make_index_sequence<(0 + ... + std::is_same_v<Argument, const char*>)>());
    }
};
template <class... Argument>
PassOn(void*, std::tuple<Argument...>) -> PassOn<Argument...>;

/// Returns `text` in capitals.
template <std::size_t size>
constexpr std::array<char, size> in_capitals(const char (&text)[size]) {
    std::array<char, size> capitals{};
    for (std::size_t i = 0; i < size; ++i)
        capitals[i] = 'a' <= text[i] && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i];
    return capitals;
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
/// Returns the info of the first illegal argument among SIDE, TRANS, M, N and K, the first five of a product with k
/// reflectors of Q (order×order), or 0.
inline int illegal_in_product(const char* side, const char* trans, Index m, Index n, Index k, Index order) {
    if (!is(side, 'L') && !is(side, 'R')) return -1;
    if (!is(trans, 'N') && !is(trans, 'T')) return -2;
    return m < 0 ? -3 : n < 0 ? -4 : k < 0 || k > order ? -5 : 0;
}
inline Op op_of(const char* trans) { return is(trans, 'N') ? Op::None : Op::Transpose; }

/// Runs `compute(ctx)` or `pass_on`. It passes a call on if there is a next routine, and Quoin does not pay or cannot
/// allocate `bytes()` of memory before it begins. `compute` returns the name of its method and may set info.
template <class Int, class Bytes, class Compute, class... Argument>
void serve(Call&& call, bool pays, Bytes bytes, Compute compute, const PassOn<Argument...>& pass_on, Int* info) {
    if (pass_on.next && may_pass_on() && !pays) return pass_on();
    try {
        try {
            detail::free_host(detail::allocate_host(static_cast<std::size_t>(std::min(bytes(), 0x1p63))));
        } catch (const OutOfMemory&) {
            if (pass_on.next) return pass_on();
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
