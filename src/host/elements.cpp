#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "host/parallel.hpp"
#include "primitives.hpp"

namespace quoin {
namespace {

using namespace host;

/// Rows of one task of an element-wise sweep.
constexpr Index sweep_rows = 16384;

Index sweeps(Index m) { return (m + sweep_rows - 1) / sweep_rows; }
Range sweep(Index s, Index m) { return {s * sweep_rows, std::min(m, (s + 1) * sweep_rows)}; }

/// The bits of |x|, whose order is that of the magnitudes, with Inf and then NaN above every number: a maximum over them
/// finds the largest entry and every entry that is not finite in one pass.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
template <class T>
Bits<T> magnitude_bits(T x) {
    return std::bit_cast<Bits<T>>(x) & (~Bits<T>(0) >> 1);
}

}  // namespace

template <class T>
void scan(Context<Host>& ctx, MatrixView<const T> A, int safe, MatrixView<int> exponents, MatrixView<Scan> found) {
    const Index count = sweeps(A.rows), n = A.cols;
    std::vector<Bits<T>> largest(count * n, 0);
#pragma omp parallel for collapse(2) schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < n; ++j) {
        for (Index s = 0; s < count; ++s) {
            const Range r = sweep(s, A.rows);
            Bits<T> top = 0;
            for (Index i = r.begin; i < r.end; ++i) top = std::max(top, magnitude_bits(A(i, j)));
            largest[j * count + s] = top;
        }
    }
    const Bits<T> inf = magnitude_bits(std::numeric_limits<T>::infinity());
    Scan result;
    for (Index j = 0; j < n; ++j) {
        Bits<T> top = 0;
        for (Index s = 0; s < count; ++s) {
            const Bits<T> value = largest[j * count + s];
            if (value >= inf && result.bad_row < 0) {
                result.bad_col = j;
                result.bad_row = sweep(s, A.rows).begin;
                while (magnitude_bits(A(result.bad_row, j)) < inf) ++result.bad_row;
            }
            top = std::max(top, value);
        }
        exponents(j, 0) = top > 0 && top < inf ? std::ilogb(std::bit_cast<T>(top)) : 0;
        result.scaled |= std::abs(exponents(j, 0)) > safe;
    }
    result.scaled &= result.bad_row < 0;
    if (!result.scaled) std::fill_n(exponents.data, n, 0);
    *found.data = result;
}

Scan read_scan(Context<Host>&, MatrixView<const Scan> found) { return *found.data; }

template <class T>
void scale_columns(Context<Host>& ctx, MatrixView<const int> exponents, int sign, Part part, MatrixView<T> A) {
#pragma omp parallel for collapse(2) schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < A.cols; ++j) {
        for (Index s = 0; s < sweeps(A.rows); ++s) {
            const Range r = sweep(s, part == Part::All ? A.rows : std::min(A.rows, j + 1));
            if (exponents(j, 0) == 0) continue;
            for (Index i = r.begin; i < r.end; ++i) A(i, j) = std::scalbn(A(i, j), sign * exponents(j, 0));
        }
    }
}

template <class T>
void copy(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T> B) {
#pragma omp parallel for collapse(2) schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < A.cols; ++j) {
        for (Index s = 0; s < sweeps(A.rows); ++s) {
            const Range r = sweep(s, A.rows);
            std::copy_n(A.at(r.begin, j), r.size(), B.at(r.begin, j));
        }
    }
}

template <class T>
void transpose(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T> B) {
    constexpr Index tile = 64;
#pragma omp parallel for collapse(2) schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index i0 = 0; i0 < A.rows; i0 += tile) {
        for (Index j0 = 0; j0 < A.cols; j0 += tile) {
            for (Index i = i0; i < std::min(A.rows, i0 + tile); ++i) {
                for (Index j = j0; j < std::min(A.cols, j0 + tile); ++j) B(j, i) = A(i, j);
            }
        }
    }
}

template <class T>
void copy_triangle(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T> R) {
#pragma omp parallel for schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < R.cols; ++j) {
        const Index top = std::min(R.rows, j + 1);
        std::copy_n(A.at(0, j), top, R.at(0, j));
        std::fill(R.at(top, j), R.at(R.rows, j), T(0));
    }
}

template <class T>
void set_identity(Context<Host>& ctx, Index first_col, MatrixView<T> A) {
#pragma omp parallel for collapse(2) schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < A.cols; ++j) {
        for (Index s = 0; s < sweeps(A.rows); ++s) {
            const Range r = sweep(s, A.rows);
            const Index diagonal = j - first_col;
            std::fill(A.at(r.begin, j), A.at(r.end, j), T(0));
            if (diagonal >= r.begin && diagonal < r.end) A(diagonal, j) = 1;
        }
    }
}

template <class T>
void set_root(Context<Host>&, MatrixView<T> A) {
    for (Index j = 0; j < A.cols; ++j) {
        std::fill_n(A.at(0, j), j, T(0));
        A(j, j) = 1;
    }
}

template <class T>
void store_triangle(Context<Host>& ctx, MatrixView<const T> R, MatrixView<T> A) {
#pragma omp parallel for schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < R.cols; ++j) std::copy_n(R.at(0, j), std::min(R.rows, j + 1), A.at(0, j));
}

template <class T>
void copy_diagonal(Context<Host>&, MatrixView<const T> A, MatrixView<T> d) {
    for (Index i = 0; i < d.rows; ++i) d(i, 0) = A(i, i);
}

template <class T>
void diagonal_signs(Context<Host>&, MatrixView<const T> A, MatrixView<T> s) {
    for (Index i = 0; i < s.rows; ++i) s(i, 0) = A(i, i) < 0 ? T(-1) : T(1);
}

template <class T>
void add_identity(Context<Host>&, MatrixView<T> A) {
    for (Index i = 0; i < A.rows; ++i) A(i, i) += 1;
}

template <class T>
void negate(Context<Host>& ctx, MatrixView<T> A) {
#pragma omp parallel for schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) A(i, j) = -A(i, j);
    }
}

template <class T>
void subtract(Context<Host>& ctx, MatrixView<const T> A, MatrixView<T> B) {
#pragma omp parallel for schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) B(i, j) -= A(i, j);
    }
}

template <class T>
void flip_rows(Context<Host>& ctx, MatrixView<const T> signs, MatrixView<T> A) {
#pragma omp parallel for schedule(static) num_threads(team(ctx, 10.0 * A.rows * A.cols))
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) A(i, j) *= signs(i, 0);
    }
}

template <class T>
bool equal(Context<Host>&, MatrixView<const T> A, MatrixView<const T> B) {
    for (Index j = 0; j < A.cols; ++j) {
        if (!std::equal(A.at(0, j), A.at(0, j) + A.rows, B.at(0, j))) return false;
    }
    return true;
}

#define QUOIN_INSTANTIATE(T)                                                                            \
    template void scan<T>(Context<Host>&, MatrixView<const T>, int, MatrixView<int>, MatrixView<Scan>); \
    template void scale_columns<T>(Context<Host>&, MatrixView<const int>, int, Part, MatrixView<T>);    \
    template void copy<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>);                          \
    template void transpose<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>);                     \
    template void copy_triangle<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>);                 \
    template void set_identity<T>(Context<Host>&, Index, MatrixView<T>);                                \
    template void set_root<T>(Context<Host>&, MatrixView<T>);                                           \
    template void store_triangle<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>);                \
    template void copy_diagonal<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>);                 \
    template void diagonal_signs<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>);                \
    template void add_identity<T>(Context<Host>&, MatrixView<T>);                                       \
    template void negate<T>(Context<Host>&, MatrixView<T>);                                             \
    template void subtract<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>);                      \
    template void flip_rows<T>(Context<Host>&, MatrixView<const T>, MatrixView<T>);                     \
    template bool equal<T>(Context<Host>&, MatrixView<const T>, MatrixView<const T>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE
template void copy<int>(Context<Host>&, MatrixView<const int>, MatrixView<int>);
template void transpose<std::uint8_t>(Context<Host>&, MatrixView<const std::uint8_t>, MatrixView<std::uint8_t>);

}  // namespace quoin
