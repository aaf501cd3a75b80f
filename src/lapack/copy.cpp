// ?copy: y := x. NumPy moves every matrix into LAPACK's order and back by one call a column. For a tall matrix that
// takes longer than its factorization.

#include <cstdlib>
#include <cstring>

#include "host/memory.hpp"
#include "lapack/abi.hpp"
#include "lapack/tuning.hpp"

namespace quoin::lapack {

namespace {

/// Returns the bytes that n numbers span, `inc` apart.
struct Span {
    Span(const void* v, Index n, Index inc, Index size)
        : begin(reinterpret_cast<std::uintptr_t>(v)), end(begin + ((n - 1) * std::abs(inc) + 1) * size) {}
    bool meets(const Span& other) const { return begin < other.end && other.begin < end; }
    std::uintptr_t begin, end;
};

template <class T>
void copy_in_order(Index n, const T* x, Index incx, T* y, Index incy) {
#pragma GCC unroll 8
    for (Index i = 0; i < n; ++i, x += incx, y += incy) *y = *x;
}

template <class T>
void copy_by_threads(Index n, const T* x, Index incx, T* y, Index incy) {
    // if y is a column of a matrix, ?copy is the first to touch the next vectors of y's large pages, too
    if (incy == 1) host::prefer_large_pages(y, n * sizeof(T));
    if (incx == 1 && incy == 1) {
#pragma omp parallel for schedule(static) num_threads(threads())
        for (Index i = 0; i < n; ++i) y[i] = x[i];
    } else {
#pragma omp parallel for schedule(static) num_threads(threads())
        for (Index i = 0; i < n; ++i) {
            const Index ahead = std::min(i + copy_ahead, n - 1);
            __builtin_prefetch(x + ahead * incx);
            __builtin_prefetch(y + ahead * incy, 1);
            y[i * incy] = x[i * incx];
        }
    }
}

template <class T>
void copy(const char* routine, Index n, const T* x, Index incx, T* y, Index incy) {
    if (n <= 0) return;
    // the reference's order matters if the vectors share memory
    const bool any_order = incy != 0 && !Span(x, n, incx, sizeof(T)).meets(Span(y, n, incy, sizeof(T)));
    if (any_order && incx == 1 && incy == 1 && !copy_pays<T>(n, 1, 1)) {
        std::memcpy(y, x, n * sizeof(T));
        return;
    }
    if (incx < 0) x += (1 - n) * incx;
    if (incy < 0) y += (1 - n) * incy;
    if (!any_order || !copy_pays<T>(n, incx, incy)) return copy_in_order(n, x, incx, y, incy);
    Call call(routine, n, 1);
    copy_by_threads(n, x, incx, y, incy);
    call.by("by threads");
}

}  // namespace

#define QUOIN_COPY(T, Int, p, before, after)                                                                         \
    QUOIN_LAPACK_ABI void before##p##copy##after(const Int* n, const T* x, const Int* incx, T* y, const Int* incy) { \
        static constexpr auto routine = in_capitals(#p "copy");                                                      \
        copy<T>(routine.data(), *n, x, *incx, y, *incy);                                                             \
    }
QUOIN_LAPACK_EXPORT(QUOIN_COPY)
#undef QUOIN_COPY

}  // namespace quoin::lapack
