#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/svd.hpp"

/// The law of the singular value decomposition, in the units of checks.hpp.
namespace quoin::test {

/// Singular values by LAPACK's QR iteration in double, descending.
template <class T>
std::vector<double> reference_singular_values(MatrixView<const T> A) {
    Matrix<double> W(A.rows, A.cols);
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) W(i, j) = static_cast<double>(A(i, j));
    }
    std::vector<double> s(std::min(A.rows, A.cols)), superdiagonal(s.size() + 1);
    if (s.empty()) return s;
    EXPECT_EQ(LAPACKE_dgesvd(LAPACK_COL_MAJOR, 'N', 'N', A.rows, A.cols, W.data(), W.ld(), s.data(), nullptr, 1,
                             nullptr, 1, superdiagonal.data()),
              0);
    return s;
}

/// max_i |σ_i − σ̂_i| in units of k·u·σ₁: Weyl's theorem for a backward error of norm O(k·u)·‖A‖₂.
template <class T>
double singular_value_error(const std::vector<double>& expected, const std::vector<T>& s) {
    double worst = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
        const double difference = std::abs(expected[i] - static_cast<double>(s[i]));
        const double error = difference == 0 ? 0 : difference / (s.size() * unit_roundoff<T> * expected[0]);
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

/// QR, the SVD of R, and Q applied to its U commit the law's error each.
inline constexpr double svd_law = 3 * law;

template <class T>
void expect_svd_law(MatrixView<const T> A, const SVD<T>& f) {
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    ASSERT_EQ(f.U.rows(), m);
    ASSERT_EQ(f.U.cols(), k);
    ASSERT_EQ(f.Vt.rows(), k);
    ASSERT_EQ(f.Vt.cols(), n);
    ASSERT_EQ(f.s.size(), static_cast<std::size_t>(k));
    EXPECT_TRUE(std::is_sorted(f.s.rbegin(), f.s.rend()));
    EXPECT_TRUE(std::all_of(f.s.begin(), f.s.end(), [](T s) { return s >= 0; }));
    EXPECT_LE(orthogonality_error<T>(f.U.view(), k), svd_law) << "UᵀU = I";
    EXPECT_LE(orthogonality_error<T>(transposed<T>(f.Vt.view()).view(), k), svd_law) << "VᵀV = I";

    Matrix<T> scaled = copy<T>(f.U.view());
    for (Index j = 0; j < k; ++j)
        for (Index i = 0; i < m; ++i) scaled(i, j) *= f.s[j];
    const Matrix<T> product = test::product<T>(scaled.view(), f.Vt.view());
    EXPECT_LE(difference<T>(product.view(), A, k, frobenius_norm<T>(A)), svd_law) << "A = U diag(s) Vᵀ";
    EXPECT_LE(singular_value_error<T>(reference_singular_values(A), f.s), svd_law);
}

/// Classes on which an SVD goes wrong when something is wrong with it.
inline constexpr Gallery svd_classes[] = {
    Gallery::RandomNormal,      Gallery::RankDeficientExact, Gallery::ZeroSomeColumns, Gallery::Zero,
    Gallery::GradedColumnsDown, Gallery::GradedRowsUp,       Gallery::Kahan,           Gallery::Hilbert,
    Gallery::Vandermonde,       Gallery::NearCollinear12,    Gallery::ClusteredScales, Gallery::Identity,
    Gallery::NearOverflow,      Gallery::SingleLargeEntry,   Gallery::UpperTriangular, Gallery::GeometricSpectrum};

/// Expects the law of the batches that decompose(A, vectors) returns for matrices in columns, in rows and in a list.
template <class T, class Decompose>
void expect_svd_law_of_batches(const Decompose& decompose) {
    constexpr Index count = std::size(svd_classes) + 2;
    for (const auto& [m, n] : {std::pair<Index, Index>{3, 3}, {32, 32}, {40, 7}, {7, 40}, {1, 1}, {300, 3}}) {
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        std::vector<Matrix<T>> A;
        for (const Gallery matrix_class : svd_classes) A.push_back(generate<T>(matrix_class, m, n));
        // R of these is near an end of T's range
        for (const int e : {std::numeric_limits<T>::min_exponent, std::numeric_limits<T>::max_exponent - 10})
            A.push_back(integers<T>(m, n, e));
        std::vector<T> columns(m * n * count), rows(m * n * count);
        std::vector<MatrixView<const T>> list;
        for (Index b = 0; b < count; ++b) {
            for (Index i = 0; i < m; ++i)
                for (Index j = 0; j < n; ++j) columns[(b * n + j) * m + i] = rows[(b * m + i) * n + j] = A[b](i, j);
            list.push_back(std::as_const(A[b]).view());
        }
        const BatchView<const T> by_columns(columns.data(), m, n, m, m * n, count),
            by_rows(rows.data(), m, n, n, 1, m * n, count);
        for (const auto& batch : {by_columns, by_rows, BatchView<const T>(list)}) {
            const BatchedSVD<T> f = decompose(batch, true), values = decompose(batch, false);
            ASSERT_EQ(f.s.count(), count);
            EXPECT_EQ(values.U.count() + values.Vt.count(), 0);
            for (Index b = 0; b < count; ++b) {
                SCOPED_TRACE(b);
                SVD<T> one{copy<T>(f.U[b]), {}, copy<T>(f.Vt[b])};
                one.s.assign(f.s[b].data, f.s[b].data + f.s[b].rows);
                std::vector<double> of_values(values.s[b].data, values.s[b].data + values.s[b].rows);
                EXPECT_LE(singular_value_error<T>(of_values, one.s), 2 * svd_law);
                if (b + 2 < count) {
                    expect_svd_law<T>(list[b], one);
                } else {
                    Context<Host> ctx;
                    const SVD<T> alone = svd(ctx, list[b]);
                    EXPECT_LE(singular_value_error<T>({alone.s.begin(), alone.s.end()}, one.s), 2 * svd_law);
                    EXPECT_LE(orthogonality_error<T>(one.U.view(), std::min(m, n)), svd_law);
                }
            }
        }
    }
}

}  // namespace quoin::test
