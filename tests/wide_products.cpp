#include "wide_products.hpp"

#include <cblas.h>

#include <cmath>
#include <numeric>

namespace quoin::test {

namespace {

/// Rows of a part of a dot product, and columns of L whose parts stay in cache.
constexpr Index part_rows = 1024, part_cols = 64;

/// A dot product of m entries.
using Dot = long double (*)(const double*, const double*, Index m);

/// Sums in pairs of doubles, as if in twice the precision (Ogita, Rump and Oishi 2005, Dot2), in registers of vectors.
/// No product may overflow, and none may be so small that its rounding error underflows.
[[gnu::always_inline]] inline long double compensated_dot(const double* x, const double* y, Index m) {
    constexpr Index lanes = 16;
    double sum[lanes] = {}, rest[lanes] = {};
    Index i = 0;
    for (; i + lanes <= m; i += lanes) {
        for (Index l = 0; l < lanes; ++l) {
            const double a = x[i + l], b = y[i + l], product = a * b, s = sum[l] + product, added = s - sum[l];
            rest[l] += ((sum[l] - (s - added)) + (product - added)) + std::fma(a, b, -product);
            sum[l] = s;
        }
    }
    long double total = std::accumulate(rest, rest + lanes, 0.0);
    for (Index l = 0; l < lanes; ++l) total += sum[l];
    for (; i < m; ++i) total += static_cast<long double>(x[i]) * y[i];
    return total;
}

#ifdef __x86_64__
[[gnu::target("avx512f")]] long double dot_avx512(const double* x, const double* y, Index m) {
    return compensated_dot(x, y, m);
}
[[gnu::target("avx2,fma")]] long double dot_avx2(const double* x, const double* y, Index m) {
    return compensated_dot(x, y, m);
}
Dot compensated() {
    if (__builtin_cpu_supports("avx512f")) return dot_avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? dot_avx2 : dot<long double, double>;
}
#else
Dot compensated() { return compensated_dot; }
#endif

/// Whether products of entries of A are far from the ends of the range.
bool is_moderate(MatrixView<const double> A) {
    for (Index j = 0; j < A.cols; ++j)
        if (!std::all_of(A.at(0, j), A.at(0, j) + A.rows,
                         [](double x) { return x == 0 || (std::abs(x) > 1e-120 && std::abs(x) < 1e120); }))
            return false;
    return true;
}

template <class X, class F>
void subtract_dots(WideMatrix<long double>& E, MatrixView<const X> L, MatrixView<const X> R, bool upper, F dot) {
    const bool is_gram = !upper && L.data == R.data && L.cols == R.cols && L.ld == R.ld;
    for (Index begin = 0; begin < L.rows; begin += part_rows) {
        for (Index first = 0; first < E.rows; first += part_cols) {
            for (Index j = is_gram ? first : 0; j < E.cols; ++j) {
                const Index end = std::min({begin + part_rows, L.rows, upper ? j + 1 : L.rows});
                const Index last = std::min(first + part_cols, is_gram ? j + 1 : E.rows);
                for (Index i = first; i < last && begin < end; ++i) {
                    const long double product = dot(L.at(begin, i), R.at(begin, j), end - begin);
                    E(i, j) -= product;
                    if (is_gram && i < j) E(j, i) -= product;
                }
            }
        }
    }
}

}  // namespace

template <class W, class X>
void subtract_product(WideMatrix<W>& E, MatrixView<const X> L, MatrixView<const X> R, bool upper) {
    if (E.rows == 0 || E.cols == 0 || L.rows == 0) return;
    if constexpr (std::is_same_v<X, double> && std::is_same_v<W, long double>) {
        subtract_dots(E, L, R, upper, is_moderate(L) && is_moderate(R) ? compensated() : dot<long double, double>);
    } else if constexpr (std::is_same_v<W, long double>) {
        subtract_dots(E, L, R, upper, dot<long double, X>);
    } else {
        const auto l = widened<X, double>(L);
        auto r = widened<X, double>(R);
        for (Index j = 0; upper && j < r.cols; ++j)
            std::fill(r.column(j) + std::min(j + 1, r.rows), r.column(j) + r.rows, 0.0);
        cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, static_cast<int>(E.rows), static_cast<int>(E.cols),
                    static_cast<int>(l.rows), -1, l.data.data(), static_cast<int>(l.rows), r.data.data(),
                    static_cast<int>(r.rows), 1, E.data.data(), static_cast<int>(E.rows));
    }
}

template void subtract_product(WideMatrix<double>&, MatrixView<const float>, MatrixView<const float>, bool);
template void subtract_product(WideMatrix<double>&, MatrixView<const double>, MatrixView<const double>, bool);
template void subtract_product(WideMatrix<long double>&, MatrixView<const double>, MatrixView<const double>, bool);
template void subtract_product(WideMatrix<long double>&, MatrixView<const long double>, MatrixView<const long double>,
                               bool);

}  // namespace quoin::test
