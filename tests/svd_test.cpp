#include "quoin/svd.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "algorithms/shared/copies.hpp"
#include "gallery.hpp"
#include "omp_threads.hpp"
#include "svd_law.hpp"

namespace quoin::test {
namespace {

template <class T>
class SvdTest : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(SvdTest, Scalars);

TYPED_TEST(SvdTest, FactorsObeyTheLaw) {
    using T = TypeParam;
    const struct {
        Index m, n;
    } shapes[] = {{1, 1},
                  {5, 5},
                  {7, 1},
                  {1, 7},
                  {60, 13},
                  {13, 60},
                  {33, 33},
                  {quick() ? 200 : 1500, 20},
                  {20, quick() ? 200 : 1500}};
    for (const Gallery matrix_class : svd_classes) {
        for (const auto& [m, n] : shapes) {
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            expect_svd_law<T>(A.view(), svd(this->ctx, A.view()));
        }
    }
}

/// These matrices or their R are reduced to bidiagonal form by panels.
TYPED_TEST(SvdTest, FactorsOfLargerMatricesObeyTheLaw) {
    using T = TypeParam;
    for (const Gallery matrix_class : svd_classes) {
        for (const auto& [m, n] : {std::pair<Index, Index>{161, 161}, {130, 200}, {150, 131}, {131, 150}}) {
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            const auto f = svd(this->ctx, A.view());
            expect_svd_law<T>(A.view(), f);
            const auto values = svd(this->ctx, A.view(), /*vectors=*/false).s;
            EXPECT_LE(singular_value_error<T>({f.s.begin(), f.s.end()}, values), 2 * svd_law);
        }
    }
}

/// The product of R with a row of subnormal numbers has few digits.
TYPED_TEST(SvdTest, RowsOfSubnormalNumbers) {
    using T = TypeParam;
    Matrix<T> A = generate<T>(Gallery::UpperTriangular, 160, 160);
    for (const Index i : {Index(0), Index(40)})
        for (Index j = i; j < 160; ++j) A(i, j) = 5 * std::numeric_limits<T>::denorm_min() * A(i, j);
    expect_svd_law<T>(A.view(), svd(this->ctx, A.view()));
}

/// Divide and conquer of bidiagonal matrices whose values coincide, or nearly, or whose parts are not connected.
TYPED_TEST(SvdTest, BidiagonalMatrices) {
    using T = TypeParam;
    constexpr Index n = 160;
    constexpr double u = unit_roundoff<T>;
    const std::pair<const char*, std::function<std::pair<double, double>(Index)>> entries[] = {
        {"1 and 1", [](Index) { return std::pair(1.0, 1.0); }},
        {"1 and 10u", [](Index) { return std::pair(1.0, 10 * u); }},
        {"Wilkinson's", [](Index i) { return std::pair(std::abs(i - n / 2.0), 1.0); }},
        {"zeros on the diagonal", [](Index i) { return std::pair(i % 7 == 0 ? 0.0 : 1.0, 1.0); }},
        {"nothing but a superdiagonal", [](Index) { return std::pair(0.0, 1.0); }},
        {"blocks", [](Index i) { return std::pair(1.0 + i % 3, i % 50 == 49 ? 0.0 : 0.5); }},
        {"graded", [](Index i) { return std::pair(std::pow(0.7, i), std::pow(0.7, i + 1)); }},
        {"graded upwards", [](Index i) { return std::pair(std::pow(0.7, n - i), std::pow(0.7, n - i)); }},
        {"one entry", [](Index i) { return std::pair(i == 120 ? -3.0 : 0.0, 0.0); }}};
    for (const auto& [name, entry] : entries) {
        SCOPED_TRACE(name);
        Matrix<T> A = filled<T>(n, n, 0);
        for (Index i = 0; i < n; ++i) {
            const auto [d, e] = entry(i);
            A(i, i) = static_cast<T>(d);
            if (i + 1 < n) A(i, i + 1) = static_cast<T>(e);
        }
        expect_svd_law<T>(A.view(), svd(this->ctx, A.view()));
    }
}

TYPED_TEST(SvdTest, PrescribedSingularValues) {
    using T = TypeParam;
    const std::vector<double> s = {100, 100, 10, 1, 1, 1e-3, 1e-7, 0};
    for (const auto& [m, n] : {std::pair<Index, Index>{90, 8}, {8, 90}}) {
        const auto f = svd(this->ctx, with_singular_values<T>(m, n, s).view());
        EXPECT_LE(singular_value_error<T>(s, f.s), svd_law);
    }
}

TYPED_TEST(SvdTest, ValuesAlone) {
    using T = TypeParam;
    for (const Gallery matrix_class : svd_classes) {
        for (const auto& [m, n] : {std::pair<Index, Index>{70, 17}, {17, 70}}) {
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            const auto f = svd(this->ctx, A.view(), /*vectors=*/false);
            ASSERT_EQ(f.s.size(), 17u);
            EXPECT_LE(singular_value_error<T>(reference_singular_values<T>(A.view()), f.s), svd_law);
            EXPECT_EQ(f.U.cols(), 0);
            EXPECT_EQ(f.Vt.rows(), 0);
        }
    }
}

TYPED_TEST(SvdTest, ReadsStridedInputAndLeavesItAlone) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{40, 6}, {6, 40}, {140, 130}, {20, 24}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        const Padded<T> A_padded(A.view());
        const auto expected = svd(this->ctx, A.view());
        EXPECT_EQ(svd(this->ctx, A_padded.view()).s, expected.s);
        const Matrix<T> At = transposed<T>(A.view());
        const auto by_rows = svd(this->ctx, RowMajorView<const T>{At.data(), m, n, n});
        EXPECT_EQ(by_rows.s, expected.s);
        EXPECT_TRUE(same_bits<T>(by_rows.U.view(), expected.U.view()));
        EXPECT_TRUE(same_bits<T>(by_rows.Vt.view(), expected.Vt.view()));
        EXPECT_TRUE(same_bits<T>(A_padded.view(), A.view()));
        EXPECT_TRUE(A_padded.padding_intact());
    }
}

TYPED_TEST(SvdTest, EveryPowerOfTwo) {
    using T = TypeParam;
    using Limits = std::numeric_limits<T>;
    for (const auto& [m, n] : {std::pair<Index, Index>{300, 3}, {3, 300}, {9, 9}}) {
        const auto expected = svd(this->ctx, integers<T>(m, n, 0).view());
        const Index k = std::min(m, n);
        for (const int e : {Limits::min_exponent - Limits::digits, Limits::min_exponent, Limits::min_exponent / 2, -1,
                            40, Limits::max_exponent / 2, Limits::max_exponent - 10, Limits::max_exponent - 4}) {
            SCOPED_TRACE(fmt::format("{}x{} times 2^{}", m, n, e));
            const Matrix<T> A = integers<T>(m, n, e);
            const auto f = svd(this->ctx, A.view());
            EXPECT_EQ(svd(this->ctx, A.view(), /*vectors=*/false).s.size(), f.s.size());
            EXPECT_LE(orthogonality_error<T>(f.U.view(), k), svd_law);
            EXPECT_LE(orthogonality_error<T>(transposed<T>(f.Vt.view()).view(), k), svd_law);
            for (Index i = 0; i < k; ++i) {
                const double s = std::ldexp(static_cast<double>(expected.s[i]), e),
                             error = svd_law * k * unit_roundoff<T> * std::ldexp(static_cast<double>(expected.s[0]), e);
                if (s > static_cast<double>(Limits::max())) {
                    EXPECT_EQ(f.s[i], Limits::infinity());
                } else {
                    EXPECT_NEAR(f.s[i], s, error + static_cast<double>(Limits::denorm_min()));
                }
            }
        }
    }
}

TYPED_TEST(SvdTest, ANormBeyondTheRangeIsInfAndTheVectorsAreRight) {
    using T = TypeParam;
    const Matrix<T> A = filled<T>(300, 3, std::numeric_limits<T>::max());
    const auto f = svd(this->ctx, A.view());
    EXPECT_EQ(f.s[0], std::numeric_limits<T>::infinity());
    EXPECT_LE(f.s[1], 300 * unit_roundoff<T> * std::numeric_limits<T>::max());
    EXPECT_LE(orthogonality_error<T>(f.U.view(), 3), svd_law);
    EXPECT_NEAR(std::abs(f.Vt(0, 0)), std::sqrt(1.0 / 3), 30 * unit_roundoff<T>);
    EXPECT_NEAR(std::abs(f.U(0, 0)), std::sqrt(1.0 / 300), 30 * unit_roundoff<T>);
    EXPECT_EQ(svd(this->ctx, A.view(), /*vectors=*/false).s[0], std::numeric_limits<T>::infinity());
}

TYPED_TEST(SvdTest, EmptyShapes) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{0, 0}, {4, 0}, {0, 4}}) {
        for (const bool vectors : {false, true}) {
            const auto f = svd(this->ctx, Matrix<T>(m, n).view(), vectors);
            EXPECT_TRUE(f.s.empty());
            if (!vectors) continue;
            EXPECT_EQ(f.U.rows(), m);
            EXPECT_EQ(f.U.cols(), 0);
            EXPECT_EQ(f.Vt.rows(), 0);
            EXPECT_EQ(f.Vt.cols(), n);
        }
    }
}

TYPED_TEST(SvdTest, NonFiniteEntriesAreNamed) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{20, 6}, {6, 20}, {7, 6}, {6, 7}, {140, 140}}) {
        Matrix<T> A = random_normal<T>(m, n);
        A(2, 5) = std::numeric_limits<T>::infinity();
        A(5, 4) = std::numeric_limits<T>::quiet_NaN();  // the first in column-major order
        try {
            svd(this->ctx, A.view());
            ADD_FAILURE() << "no NonFiniteEntry";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, 5);
            EXPECT_EQ(e.col, 4);
        }
        Options unchecked;
        unchecked.check_finite = false;
        EXPECT_THROW(svd(this->ctx, A.view(), true, unchecked), NumericalBreakdown);
    }
}

TYPED_TEST(SvdTest, AFormWithoutQServesOnlyTheValues) {
    using T = TypeParam;
    Options r_only;
    r_only.q = QForm::None;
    const Matrix<T> A = random_normal<T>(30, 4);
    expect_svd_law<T>(A.view(), svd(this->ctx, A.view(), true, r_only));
}

TYPED_TEST(SvdTest, TheSameBitsForAnyNumberOfThreads) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{quick() ? 500 : 3000, 100}, {150, 500}, {600, 560}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        Context<Host> one(1);
        const auto expected = svd(one, A.view());
        for (const int threads : {2, 3, 4}) {
            Context<Host> several(threads);
            const OmpThreads outside(threads);
            const auto f = svd(several, A.view());
            EXPECT_EQ(f.s, expected.s) << threads << " threads";
            EXPECT_TRUE(same_bits<T>(f.U.view(), expected.U.view())) << threads << " threads";
            EXPECT_TRUE(same_bits<T>(f.Vt.view(), expected.Vt.view())) << threads << " threads";
        }
    }
}

TYPED_TEST(SvdTest, ASquareNeedsNoQRUnlessOneIsAskedFor) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(40, 30);
    const auto f = svd(this->ctx, A.view());
    EXPECT_EQ(f.report.method, Method::Auto);
    EXPECT_GE(f.report.seconds, 0);
    EXPECT_GT(f.report.flops, 0);
    EXPECT_EQ(svd(this->ctx, A.view(), true, {.method = Method::TSQR}).report.method, Method::TSQR);
    const auto verified = svd(this->ctx, A.view(), true, {.verify = true});
    EXPECT_GE(verified.report.orthogonality, 0);
    EXPECT_EQ(svd(this->ctx, random_normal<T>(41, 30).view()).report.method == Method::Auto, false);
    EXPECT_THROW(svd(this->ctx, MatrixView<const T>(A.data(), 40, 30, 39)), InvalidArgument);
}

/// LAPACK does not count its flops, and serves less than 128 columns.
TYPED_TEST(SvdTest, CountsTheFlopsThatItEstimates) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{200, 200}, {180, 240}, {2000, 150}, {150, 1000}}) {
        const Matrix<T> A = random_normal<T>(m, n);
        for (const bool vectors : {true, false}) {
            SCOPED_TRACE(fmt::format("{}x{} {}", m, n, vectors));
            this->ctx.reset_progress();
            svd(this->ctx, A.view(), vectors);
            const double share = this->ctx.flops_done() / flops_of_svd<T>(this->ctx, m, n, vectors);
            EXPECT_GE(share, 0.7);
            EXPECT_LE(share, 1.3);
        }
    }
}

TYPED_TEST(SvdTest, BatchesObeyTheLaw) {
    using T = TypeParam;
    expect_svd_law_of_batches<T>([&](BatchView<const T> A, bool vectors) { return svd<T>(this->ctx, A, vectors); });
}

TYPED_TEST(SvdTest, BatchesNameTheMatrix) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{20, 6}, {6, 20}}) {
        Batch<T> A(this->ctx, m, n, 5);
        for (Index b = 0; b < 5; ++b) copy<T>(this->ctx, random_normal<T>(m, n, b).view(), A[b]);
        A[3].data[m * 4 + 5] = A[4].data[0] = std::numeric_limits<T>::quiet_NaN();
        try {
            svd<T>(this->ctx, std::as_const(A).view());
            ADD_FAILURE() << "no NonFiniteEntry";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, 5);
            EXPECT_EQ(e.col, 4);
            EXPECT_EQ(e.matrix, "matrix 3 of the batch");
        }
        try {
            svd<T>(this->ctx, std::as_const(A).view(), true, {.check_finite = false});
            ADD_FAILURE() << "no NumericalBreakdown";
        } catch (const NumericalBreakdown& e) {
            EXPECT_NE(std::string(e.what()).find("matrix 3 of the batch"), std::string::npos) << e.what();
        }
    }
    EXPECT_EQ(svd<T>(this->ctx, BatchView<const T>(nullptr, 4, 3, 4, 12, 0)).s.count(), 0);
}

TYPED_TEST(SvdTest, BatchesHaveTheSameBitsForAnyNumberOfThreads) {
    using T = TypeParam;
    for (const auto& [m, n, count] : {std::array<Index, 3>{32, 32, 40}, {9, 4, 200}, {200, 150, 3}}) {
        Batch<T> A(this->ctx, m, n, count);
        copy<T>(this->ctx, random_normal<T>(m, n * count).view(), MatrixView<T>(A[0].data, m, n * count, m));
        Context<Host> one(1);
        const BatchedSVD<T> expected = svd<T>(one, std::as_const(A).view());
        for (const int threads : {2, 3, 4}) {
            Context<Host> several(threads);
            const BatchedSVD<T> f = svd<T>(several, std::as_const(A).view());
            for (Index b = 0; b < count; ++b) {
                EXPECT_TRUE(same_bits<T>(f.s[b], expected.s[b])) << threads << " threads";
                EXPECT_TRUE(same_bits<T>(f.U[b], expected.U[b])) << threads << " threads";
                EXPECT_TRUE(same_bits<T>(f.Vt[b], expected.Vt[b])) << threads << " threads";
            }
        }
    }
}

}  // namespace
}  // namespace quoin::test
