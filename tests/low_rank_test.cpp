// Interpolative and CUR decompositions, the truncated SVD, and the bound of strong pivots.

#include "quoin/low_rank.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "quoin/svd.hpp"

namespace quoin::test {
namespace {

/// U V of rank r, with singular values of order √(mn).
template <class T>
Matrix<T> of_rank(Index m, Index n, Index r, unsigned seed = 1) {
    const Matrix<T> U = random_normal<T>(m, r, seed), V = random_normal<T>(r, n, seed + 1);
    return product<T>(U.view(), V.view());
}

template <class T>
Matrix<T> columns(MatrixView<const T> A, const std::vector<Index>& p) {
    Matrix<T> B(A.rows, static_cast<Index>(p.size()));
    for (Index j = 0; j < B.cols(); ++j) std::copy_n(A.at(0, p[j]), A.rows, B.view().at(0, j));
    return B;
}

template <class T>
double largest_entry(MatrixView<const T> X) {
    double largest = 0;
    for (Index j = 0; j < X.cols; ++j) {
        for (Index i = 0; i < X.rows; ++i) largest = std::max(largest, std::abs(static_cast<double>(X(i, j))));
    }
    return largest;
}

/// Kahan's matrix, whose columns shrink a little: greedy pivots leave them in their order, and |R₁₁⁻¹R₁₂| grows as 2ⁿ.
template <class T>
Matrix<T> kahan(Index n) {
    Matrix<T> A(n, n);
    const double sine = std::sin(1.2), cosine = std::cos(1.2);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i <= j; ++i) {
            A(i, j) = static_cast<T>(std::pow(sine, i) * (i < j ? -cosine : 1) * (1 - 1e-4 * j / n));
        }
        for (Index i = j + 1; i < n; ++i) A(i, j) = 0;
    }
    return A;
}

template <class T>
class LowRank : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(LowRank, Scalars);

TYPED_TEST(LowRank, ColumnsOfAnExactRankSpanTheMatrix) {
    using T = TypeParam;
    for (auto [m, n, r] : {std::tuple<Index, Index, Index>{80, 60, 7},
                           {60, 80, 7},
                           {900, 40, 11},
                           {40, 900, 11},
                           {50, 50, 1},
                           {30, 20, 20},
                           {1, 5, 1},
                           {5, 1, 1}}) {
        const Matrix<T> A = of_rank<T>(m, n, r);
        const Padded<T> padded(A.view());
        for (const Pivots kind : {Pivots::Auto, Pivots::Greedy, Pivots::Randomized, Pivots::Strong}) {
            for (const Pivoting limit :
                 {Pivoting{.kind = kind}, {.kind = kind, .max_rank = r}, {.kind = kind, .relative_tolerance = 1e-4}}) {
                SCOPED_TRACE(shape_name(m, n) + " " + to_string(kind) + " " + std::to_string(limit.max_rank));
                const auto [p, X, report] = interpolative<T>(this->ctx, padded.view(), limit);
                ASSERT_EQ(static_cast<Index>(p.size()), r);
                ASSERT_EQ(X.rows(), r);
                ASSERT_EQ(X.cols(), n);
                const Matrix<T> C = columns<T>(A.view(), p), CX = product<T>(C.view(), X.view());
                // C X sums r products of up to |X| ‖C‖
                const double size = frobenius_norm<T>(C.view()) * std::max(1.0, frobenius_norm<T>(X.view()));
                EXPECT_LE(difference<T>(CX.view(), A.view(), std::max(m, n), size), law);
                for (Index k = 0; k < r; ++k) {
                    for (Index i = 0; i < r; ++i) EXPECT_EQ(X(i, p[k]), i == k ? T(1) : T(0));
                }
                const auto d = cur<T>(this->ctx, padded.view(), limit);
                ASSERT_EQ(d.columns, p);
                ASSERT_EQ(static_cast<Index>(d.rows.size()), r);
                Matrix<T> R(r, n);
                for (Index j = 0; j < n; ++j) {
                    for (Index k = 0; k < r; ++k) R(k, j) = A(d.rows[k], j);
                }
                const Matrix<T> UR = product<T>(d.U.view(), R.view()), CUR_ = product<T>(C.view(), UR.view());
                const double all =
                    frobenius_norm<T>(C.view()) * frobenius_norm<T>(d.U.view()) * frobenius_norm<T>(R.view());
                EXPECT_LE(difference<T>(CUR_.view(), A.view(), std::max(m, n), all), law);
            }
        }
    }
}

TYPED_TEST(LowRank, RowMajorAndColumnMajorHaveTheSameBits) {
    using T = TypeParam;
    const Matrix<T> A = of_rank<T>(70, 50, 9);
    std::vector<T> rows(70 * 50);
    for (Index i = 0; i < 70; ++i) {
        for (Index j = 0; j < 50; ++j) rows[i * 50 + j] = A(i, j);
    }
    const auto a = cur<T>(this->ctx, A.view(), {.max_rank = 5});
    const auto b = cur<T>(this->ctx, RowMajorView<const T>{rows.data(), 70, 50, 50}, {.max_rank = 5});
    EXPECT_EQ(a.columns, b.columns);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_TRUE(same_bits<T>(a.U.view(), b.U.view()));
}

TYPED_TEST(LowRank, StrongPivotsBoundTheOtherColumns) {
    using T = TypeParam;
    const Index n = 96;
    std::vector<Matrix<T>> all;
    all.push_back(kahan<T>(n));
    all.push_back(with_condition<T>(3 * n, n, 1e5));
    all.push_back(with_condition<T>(n, 2 * n, 1e5));
    all.push_back(generate<T>(Gallery::RankDeficientExact, 10 * n, n));
    for (const Matrix<T>& A : all) {
        for (const Index rank : {Index(1), n / 3, n - 1}) {
            for (const double bound : {1.2, 2.0, 10.0}) {
                SCOPED_TRACE(shape_name(A.rows(), A.cols()) + " " + std::to_string(rank));
                const Pivoting strong{.kind = Pivots::Strong, .max_rank = rank, .strong_bound = bound};
                const auto d = interpolative<T>(this->ctx, A.view(), strong);
                EXPECT_LE(largest_entry<T>(d.X.view()), bound * (1 + n * std::sqrt(unit_roundoff<T>)));
            }
        }
    }
    // greedy pivots of Kahan's matrix do not have the bound
    const auto greedy = interpolative<T>(this->ctx, all[0].view(), {.kind = Pivots::Greedy, .max_rank = n - 1});
    EXPECT_GT(largest_entry<T>(greedy.X.view()), 100);
}

/// σ_i(R₁₁) >= σ_i / √(1 + f²k(n − k)) and σ_j(R₂₂) <= σ_{k+j} √(1 + f²k(n − k)) (Gu and Eisenstat 1996, Theorem 3.2).
TYPED_TEST(LowRank, StrongPivotsRevealTheRank) {
    using T = TypeParam;
    const Index n = 80;
    const double f = 1.5;
    std::vector<double> sigma(n);
    for (Index i = 0; i < n; ++i) sigma[i] = i < n / 2 ? 1 : 1e-3;
    for (const Matrix<T>& A : {kahan<T>(n), with_singular_values<T>(n, n, sigma)}) {
        const auto s = svd(this->ctx, A.view(), false).s;
        for (const Index k : {n / 2, n - 1}) {
            Options options;
            options.pivoting = Pivoting{.kind = Pivots::Strong, .max_rank = k, .strong_bound = f};
            const QR<T> limited = qr(this->ctx, A.view(), options);
            // R₂₂ of all of A P
            const std::vector<Index> p(limited.permutation().begin(), limited.permutation().end());
            const Matrix<T> R = qr(this->ctx, columns<T>(A.view(), p).view()).r();
            const Range top{0, k}, rest{k, n};
            const auto s1 = svd(this->ctx, std::as_const(R).view().block(top, top), false).s,
                       s2 = svd(this->ctx, std::as_const(R).view().block(rest, rest), false).s;
            const double q = std::sqrt(1 + f * f * k * (n - k)), rounding = law * n * unit_roundoff<T> * s[0];
            for (Index i = 0; i < k; ++i) EXPECT_GE(s1[i], s[i] / q - rounding) << i;
            for (Index j = 0; j < n - k; ++j) EXPECT_LE(s2[j], s[k + j] * q + rounding) << j;
            // its factors are the leading ones of A P
            EXPECT_EQ(limited.report().rank, k);
            const Matrix<T> Q = limited.form_q(this->ctx), R1 = limited.r();
            EXPECT_LE(orthogonality_error<T>(Q.view(), n), law);
            for (Index j = 0; j < k; ++j) {
                for (Index i = 0; i < k; ++i) {
                    EXPECT_NEAR(std::abs(R1(i, j)), std::abs(R(i, j)),
                                law * n * unit_roundoff<T> * s[0] * s[0] / s[k - 1]);
                }
            }
        }
    }
}

/// ‖A − U S Vᵀ‖ is what the pivoted QR left of A.
TYPED_TEST(LowRank, TruncatedSvd) {
    using T = TypeParam;
    // the last is sketched by way of a sparse embedding
    for (auto [m, n] : {std::pair<Index, Index>{150, 90}, {90, 150}, {1200, 60}, {4200, 300}}) {
        const Index r = 12, k = std::min(m, n);
        std::vector<double> sigma(k);
        for (Index i = 0; i < k; ++i) sigma[i] = std::pow(0.5, i);
        const Matrix<T> A = with_singular_values<T>(m, n, sigma);
        Options options;
        options.pivoting = Pivoting{.max_rank = r};
        const auto [U, s, Vt, report] = svd(this->ctx, A.view(), true, options);
        SCOPED_TRACE(shape_name(m, n));
        ASSERT_EQ(U.cols(), r);
        ASSERT_EQ(static_cast<Index>(s.size()), r);
        ASSERT_EQ(Vt.rows(), r);
        EXPECT_EQ(report.rank, (r + r / 2 + 15) / 8 * 8);
        EXPECT_LE(orthogonality_error<T>(U.view(), r), law);
        EXPECT_LE(orthogonality_error<T>(transposed<T>(Vt.view()).view(), r), law);
        Matrix<T> US = copy<T>(U.view());
        for (Index j = 0; j < r; ++j) {
            for (Index i = 0; i < m; ++i) US(i, j) *= s[j];
        }
        const Matrix<T> B = product<T>(US.view(), Vt.view());
        double left = 0;
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i)
                left += std::pow(static_cast<double>(A(i, j)) - static_cast<double>(B(i, j)), 2);
        }
        left = std::sqrt(left);
        const double best = sigma[r] / std::sqrt(0.75), rounding = law * k * unit_roundoff<T>;
        EXPECT_GE(left, best - rounding);
        EXPECT_LE(left, 1.01 * best + rounding);
        // R_r has 32 columns, and leaves no more than a small multiple of the next singular value
        const double rest = 100 * sigma[26];
        for (Index i = 0; i < r; ++i) EXPECT_NEAR(s[i], sigma[i], rest * rest / sigma[i] + rounding);
        options.pivoting->kind = Pivots::Greedy;
        const auto values = svd(this->ctx, A.view(), false, options);
        EXPECT_EQ(values.U.rows(), 0);
        for (Index i = 0; i < r; ++i) EXPECT_NEAR(values.s[i], sigma[i], rest * rest / sigma[i] + rounding);
        // a tolerance
        options.pivoting = Pivoting{.relative_tolerance = 1e-2};
        const auto by_tolerance = svd(this->ctx, A.view(), true, options);
        EXPECT_LT(by_tolerance.s.size(), 20u);
        EXPECT_GE(by_tolerance.s.size(), 5u);
    }
}

TYPED_TEST(LowRank, RankZeroAndEmptyMatricesAreAnswers) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{6, 4}, {4, 6}, {0, 4}, {4, 0}, {0, 0}}) {
        const Matrix<T> A = filled<T>(m, n, T(0));
        for (const Pivots kind : {Pivots::Auto, Pivots::Strong}) {
            const auto d = interpolative<T>(this->ctx, A.view(), {.kind = kind});
            EXPECT_TRUE(d.columns.empty());
            EXPECT_EQ(d.X.rows(), 0);
            EXPECT_EQ(d.X.cols(), n);
            const auto c = cur<T>(this->ctx, A.view(), {.kind = kind});
            EXPECT_TRUE(c.columns.empty() && c.rows.empty());
            EXPECT_EQ(c.U.rows(), 0);
        }
    }
}

TYPED_TEST(LowRank, RefusesBadInput) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(20, 10);
    const auto refused = [&](const Pivoting& pivoting) {
        EXPECT_THROW(interpolative<T>(this->ctx, A.view(), pivoting), InvalidArgument);
        EXPECT_THROW(cur<T>(this->ctx, A.view(), pivoting), InvalidArgument);
    };
    refused({.max_rank = 11});
    refused({.max_rank = -1});
    refused({.relative_tolerance = -1});
    refused({.kind = Pivots::Strong, .strong_bound = 1});
    refused({.kind = Pivots::Strong, .seed = 3});
    A(3, 4) = std::numeric_limits<T>::quiet_NaN();
    EXPECT_THROW(interpolative<T>(this->ctx, A.view(), {}), NonFiniteEntry);
}

}  // namespace
}  // namespace quoin::test
