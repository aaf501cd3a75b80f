// Elementwise primitives: copies, scans, scaling, triangles and transposition.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "host/cache_block.hpp"
#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin {
namespace {

using namespace host;

constexpr Index sweep_rows = Tuning<Host>::sweep_rows;

Index sweeps(Index m) { return (m + sweep_rows - 1) / sweep_rows; }
Range sweep(Index s, Index m) { return {s * sweep_rows, std::min(m, (s + 1) * sweep_rows)}; }

template <class T>
MagnitudeBits<T> largest(Index m, const T* x) {
    return kernels<T>().largest(m, x);
}
/// Returns the largest magnitude, as bits, among the real and imaginary parts.
template <class R>
MagnitudeBits<R> largest(Index m, const std::complex<R>* x) {
    return kernels<R>().largest(2 * m, reinterpret_cast<const R*>(x));
}

template <class T>
void transpose_in_cache(Index m, Index n, const T* A, Index lda, T* B, Index ldb) {
    kernels<T>().transpose(m, n, A, lda, B, ldb);
}
void transpose_in_cache(Index m, Index n, const std::uint8_t* A, Index lda, std::uint8_t* B, Index ldb) {
    for (Index i = 0; i < m; ++i) {
        for (Index j = 0; j < n; ++j) B[j + i * ldb] = A[i + j * lda];
    }
}

}  // namespace

template <class T, class D>
void scan(Context<D>& ctx, Input<T, D> A, int safe, View<int, D> exponents, View<Scan, D> found) {
    // a row-major matrix is copied into column-major blocks in cache
    const Index tile = A.by_rows ? Tuning<Host>::transpose_tile : 1;
    const Index height = A.by_rows ? cache_block_rows<T>(tile) : sweep_rows;
    const Index count = (A.rows + height - 1) / height, n = A.cols;
    const auto sweep = [&](Index s) { return Range{s * height, std::min(A.rows, (s + 1) * height)}; };
    using Bits = MagnitudeBits<Real<T>>;
    std::vector<Bits> tops(count * n);
    const Team threads = team(ctx, 0, A.rows * n);
    Arena::Frame frame(ctx.state().arena);
    ThreadBuffers<T> buffers(frame, threads, A.by_rows ? height * tile : 0);
    for_parts(threads, (n + tile - 1) / tile, count, [&](Index J, Index s) {
        const Range r = sweep(s), columns{J * tile, std::min(n, (J + 1) * tile)};
        MatrixView<const T> block = A.row_block(r).col_block(columns).stored();
        if (A.by_rows) {
            load_block<T>(A.row_block(r).col_block(columns), buffers.mine(), r.size());
            block = {buffers.mine(), r.size(), columns.size()};
        }
        for (Index j = 0; j < columns.size(); ++j)
            tops[(columns.begin + j) * count + s] = largest(r.size(), block.at(0, j));
    });
    const auto inf = std::bit_cast<Bits>(std::numeric_limits<Real<T>>::infinity());
    Scan result;
    for (Index j = 0; j < n; ++j) {
        Bits top = 0;
        for (Index s = 0; s < count; ++s) {
            const Bits value = tops[j * count + s];
            if (value >= inf && result.bad_row < 0) {
                result.bad_col = j;
                result.bad_row = sweep(s).begin;
                while (largest(1, A.at(result.bad_row, j)) < inf) ++result.bad_row;
            }
            top = std::max(top, value);
        }
        exponents(j, 0) = top > 0 && top < inf ? std::ilogb(std::bit_cast<Real<T>>(top)) : 0;
        result.scaled |= std::abs(exponents(j, 0)) > safe;
    }
    result.scaled &= result.bad_row < 0;
    if (!result.scaled) std::fill_n(exponents.data, n, 0);
    *found.data = result;
}

template <class T, class D>
void scale_columns(Context<D>& ctx, View<const int, D> exponents, int sign, Part part, View<T, D> A) {
    for_parts(team(ctx, 0, A.rows * A.cols), A.cols, sweeps(A.rows), [&](Index j, Index s) {
        const Range r = sweep(s, part == Part::All ? A.rows : std::min(A.rows, j + 1));
        if (exponents(j, 0) == 0) return;
        for (Index i = r.begin; i < r.end; ++i) A(i, j) = times_power_of_two(A(i, j), sign * exponents(j, 0));
    });
}

template <class T, class D>
void copy(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    for_parts(team(ctx, 0, A.rows * A.cols), A.cols, sweeps(A.rows), [&](Index j, Index s) {
        const Range r = sweep(s, A.rows);
        std::copy_n(A.at(r.begin, j), r.size(), B.at(r.begin, j));
    });
}

template <class S, class T, class D>
void multiply_columns(Context<D>& ctx, View<const S, D> A, View<const double, D> factors, View<T, D> B) {
    for_parts(team(ctx, 0, A.rows * A.cols), A.cols, sweeps(A.rows), [&](Index j, Index s) {
        const Range r = sweep(s, A.rows);
        const double factor = factors(j, 0);
        std::transform(A.at(r.begin, j), A.at(r.end, j), B.at(r.begin, j),
                       [=](S x) { return static_cast<T>(factor * x); });
    });
}

template <class T, class D>
void start_copy_from_host(Context<D>& ctx, View<const T, Host> A, View<T, D> B) {
    copy<T>(ctx, A, B);
}
template <class T, class D>
void start_copy_to_host(Context<D>& ctx, View<const T, D> A, View<T, Host> B) {
    copy<T>(ctx, A, B);
}

template <class T, class D>
void transpose(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    constexpr Index tile = Tuning<Host>::transpose_tile;
    for_parts(
        team(ctx, 0, A.rows * A.cols), (A.rows + tile - 1) / tile, (A.cols + tile - 1) / tile, [&](Index I, Index J) {
            const Range r{I * tile, std::min(A.rows, (I + 1) * tile)}, c{J * tile, std::min(A.cols, (J + 1) * tile)};
            transpose_in_cache(r.size(), c.size(), A.at(r.begin, c.begin), A.ld, B.at(c.begin, r.begin), B.ld);
        });
}

template <class T, class D>
void copy_triangle(Context<D>& ctx, View<const T, D> A, View<T, D> R) {
    for_parts(team(ctx, 0, A.rows * A.cols), R.cols, [&](Index j) {
        const Index top = std::min(R.rows, j + 1);
        std::copy_n(A.at(0, j), top, R.at(0, j));
        std::fill(R.at(top, j), R.at(R.rows, j), T(0));
    });
}

template <class T, class D>
void set_identity(Context<D>& ctx, Index first_col, View<T, D> A) {
    for_parts(team(ctx, 0, A.rows * A.cols), A.cols, sweeps(A.rows), [&](Index j, Index s) {
        const Range r = sweep(s, A.rows);
        const Index diagonal = j - first_col;
        std::fill(A.at(r.begin, j), A.at(r.end, j), T(0));
        if (diagonal >= r.begin && diagonal < r.end) A(diagonal, j) = 1;
    });
}

template <class T, class D>
void set_root(Context<D>&, View<T, D> A) {
    for (Index j = 0; j < A.cols; ++j) {
        std::fill_n(A.at(0, j), j, T(0));
        A(j, j) = 1;
    }
}

template <class T, class D>
void store_triangle(Context<D>& ctx, View<const T, D> R, View<T, D> A) {
    for_parts(team(ctx, 0, A.rows * A.cols), R.cols,
              [&](Index j) { std::copy_n(R.at(0, j), std::min(R.rows, j + 1), A.at(0, j)); });
}

template <class T, class D>
void copy_diagonal(Context<D>&, View<const T, D> A, View<T, D> d) {
    for (Index i = 0; i < d.rows; ++i) d(i, 0) = A(i, i);
}

template <class T, class D>
void diagonal_signs(Context<D>&, View<const T, D> A, View<T, D> s) {
    for (Index i = 0; i < s.rows; ++i) s(i, 0) = real_part(A(i, i)) < 0 ? T(-1) : T(1);
}

template <class T, class D>
void add_identity(Context<D>&, View<T, D> A) {
    for (Index i = 0; i < A.rows; ++i) A(i, i) += 1;
}

/// Calls f(i, j) for every entry of A, columns by several threads.
template <class T, class F>
void for_entries(Context<Host>& ctx, MatrixView<T> A, F f) {
    for_parts(team(ctx, 0, A.rows * A.cols), A.cols, [&](Index j) {
        for (Index i = 0; i < A.rows; ++i) f(i, j);
    });
}

template <class T, class D>
void negate(Context<D>& ctx, View<T, D> A) {
    for_entries(ctx, A, [=](Index i, Index j) { A(i, j) = -A(i, j); });
}

template <class T, class D>
void conjugate_entries(Context<D>& ctx, View<T, D> A) {
    for_entries(ctx, A, [=](Index i, Index j) { A(i, j) = conjugate(A(i, j)); });
}

template <class T, class D>
void add(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    for_entries(ctx, A, [=](Index i, Index j) { B(i, j) += A(i, j); });
}

template <class T, class D>
void pack_triangle(Context<D>&, View<const T, D> R, View<T, D> p) {
    for (Index j = 0; j < R.cols; ++j)
        std::copy_n(R.at(0, j), std::min(R.rows, j + 1), p.data + packed_column(R.rows, j));
}

template <class T, class D>
void unpack_triangle(Context<D>&, View<const T, D> p, View<T, D> R) {
    for (Index j = 0; j < R.cols; ++j)
        std::copy_n(p.data + packed_column(R.rows, j), std::min(R.rows, j + 1), R.at(0, j));
}

template <class T, class D>
void subtract(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    for_entries(ctx, A, [=](Index i, Index j) { B(i, j) -= A(i, j); });
}

template <class T, class D>
void flip_rows(Context<D>& ctx, View<const T, D> signs, View<T, D> A) {
    for_entries(ctx, A, [=](Index i, Index j) { A(i, j) *= signs(i, 0); });
}

template <class T, class D>
void flip_columns(Context<D>& ctx, View<const T, D> signs, View<T, D> A) {
    for_entries(ctx, A, [=](Index i, Index j) { A(i, j) *= signs(j, 0); });
}

template <class T, class D>
bool equal(Context<D>&, View<const T, D> A, View<const T, D> B) {
    for (Index j = 0; j < A.cols; ++j) {
        if (!std::equal(A.at(0, j), A.at(0, j) + A.rows, B.at(0, j))) return false;
    }
    return true;
}

QUOIN_IMPLEMENT(Host, scan, scale_columns, copy, transpose, copy_triangle, set_identity, set_root, store_triangle,
                copy_diagonal, diagonal_signs, add_identity, negate, subtract)
QUOIN_IMPLEMENT(Host, flip_rows, flip_columns, equal, add, pack_triangle, unpack_triangle, start_copy_from_host,
                start_copy_to_host)
#ifdef QUOIN_COMPLEX
QUOIN_IMPLEMENT(Host, conjugate_entries)
#endif
template decltype(multiply_columns<double, float, Host>) multiply_columns<double, float, Host>;
template decltype(multiply_columns<float, double, Host>) multiply_columns<float, double, Host>;
template decltype(copy<int, Host>) copy<int, Host>;
template decltype(copy<std::uint8_t, Host>) copy<std::uint8_t, Host>;
template decltype(start_copy_from_host<int, Host>) start_copy_from_host<int, Host>;
template decltype(start_copy_to_host<int, Host>) start_copy_to_host<int, Host>;
template decltype(copy<Index, Host>) copy<Index, Host>;
template decltype(start_copy_from_host<Index, Host>) start_copy_from_host<Index, Host>;
template decltype(start_copy_to_host<Index, Host>) start_copy_to_host<Index, Host>;
template decltype(transpose<std::uint8_t, Host>) transpose<std::uint8_t, Host>;

}  // namespace quoin
