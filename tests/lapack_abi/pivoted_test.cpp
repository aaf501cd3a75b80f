// ?geqp3: the law for A P, greedy pivots, columns that the caller fixes, and the system's pivots.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "lapack_abi/lapack.hpp"

namespace quoin::test {
namespace {

template <class T, class Int>
Matrix<T> columns(MatrixView<const T> A, const std::vector<Int>& jpvt) {
    Matrix<T> AP(A.rows, A.cols);
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, jpvt[j] - 1), A.rows, AP.view().at(0, j));
    return AP;
}

/// Expects the law for A P, the fixed columns in front, and |r_kk| >= ‖R(k:j, j)‖₂ for the other k <= j, up to
/// rounding.
template <class T, class Int>
void expect_pivoted(const Lapack<T, Int>& lapack, MatrixView<const T> A, std::vector<Int> jpvt, Work size) {
    const Index m = A.rows, n = A.cols, k = std::min(m, n);
    std::vector<Int> fixed;
    for (Index j = 0; j < n; ++j) {
        if (jpvt[j] != 0) fixed.push_back(static_cast<Int>(j + 1));
    }
    SCOPED_TRACE(testing::Message() << m << " x " << n << ", " << fixed.size() << " fixed");
    Padded<T> V(A);
    const auto tau = lapack.geqp3(V.view(), jpvt, size);
    EXPECT_TRUE(V.padding_intact());
    if (k == 0) return;
    std::vector<Int> sorted = jpvt, all(n);
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), Int(1));
    ASSERT_EQ(sorted, all);
    EXPECT_TRUE(std::equal(fixed.begin(), fixed.end(), jpvt.begin()));
    const Matrix<T> R = upper<T>(V.view(), k), AP = columns(A, jpvt);
    Matrix<T> Q(m, k);
    for (Index j = 0; j < k; ++j) std::copy_n(V.view().at(0, j), m, Q.view().at(0, j));
    lapack.orgqr(Q.view(), static_cast<Int>(k), tau, Work::Queried);
    EXPECT_LE(residual_error<T>(AP.view(), Q.view(), R.view()), law);
    EXPECT_LE(orthogonality_error<T>(Q.view(), k), law);
    const double eta = std::numeric_limits<T>::denorm_min() * std::sqrt(static_cast<double>(m * n));
    const double rounding = law * static_cast<double>(k) * (unit_roundoff<T> * frobenius_norm<T>(A) + eta);
    for (Index j = 0; j < n; ++j) {
        double below = 0;
        for (Index i = std::min(j, k - 1); i >= static_cast<Index>(fixed.size()); --i) {
            below = std::hypot(below, static_cast<double>(R(i, j)));
            ASSERT_GE(std::abs(static_cast<double>(R(i, i))) + rounding, below) << i << ", " << j;
        }
    }
}

/// jpvt with every `step`th column from `from` on fixed.
template <class Int>
std::vector<Int> fixed_columns(Index n, Index from, Index step) {
    std::vector<Int> jpvt(n, 0);
    for (Index j = from; j < n; j += step) jpvt[j] = static_cast<Int>(7 - 20 * (j % 2));
    return jpvt;
}

template <class Types>
class LapackPivoted : public OverAllTypes<Types> {};
TYPED_TEST_SUITE(LapackPivoted, AllTypes);

TYPED_TEST(LapackPivoted, ObeysTheLawForEveryShape) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    std::vector<std::pair<Index, Index>> shapes = {{300, 300}, {700, 90}, {90, 301}, {1200, 40}, {3000, 33}};
    for (const Index m : {0, 1, 2, 3, 5, 10, 50}) {
        for (const Index n : {0, 1, 2, 3, 5, 10, 50}) shapes.emplace_back(m, n);
    }
    for (const auto& [m, n] : shapes) {
        const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
        expect_pivoted<T, Int>(this->quoin, A.view(), std::vector<Int>(n, 0), Work::Minimal);
        expect_pivoted<T, Int>(this->quoin, A.view(), std::vector<Int>(n, 0), Work::Queried);
        for (const auto& [from, step] : {std::pair<Index, Index>{0, 1}, {0, 3}, {n / 2, 1}, {n - 1, n + 1}}) {
            if (n > 0) expect_pivoted<T, Int>(this->quoin, A.view(), fixed_columns<Int>(n, from, step), Work::Queried);
        }
    }
}

TYPED_TEST(LapackPivoted, ObeysTheLawForEveryClassOfMatrices) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    int turn = 0;
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        for (const auto& [m, n] : {std::pair<Index, Index>{700, 60}, {turn % 2 ? 90 : 40, 70}}) {
            const Matrix<T> A = generate<T>(matrix_class, m, n);
            expect_pivoted<T, Int>(this->quoin, A.view(), std::vector<Int>(n, 0), Work::Queried);
            expect_pivoted<T, Int>(this->quoin, A.view(), fixed_columns<Int>(n, turn % 5, 11), Work::Queried);
        }
        ++turn;
    }
}

TYPED_TEST(LapackPivoted, ZerosAndEqualColumnsKeepTheirOrder) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    for (const Index m : {20, 400}) {
        const Index n = 18;
        std::vector<Int> ascending(n), jpvt(n, 0);
        std::iota(ascending.begin(), ascending.end(), Int(1));
        Matrix<T> zero = filled<T>(m, n, T(0));
        const auto tau = this->quoin.geqp3(zero.view(), jpvt, Work::Minimal);
        EXPECT_EQ(jpvt, ascending);
        EXPECT_EQ(tau, std::vector<T>(std::min(m, n), T(0)));
        EXPECT_EQ(frobenius_norm<T>(zero.view()), 0);
        expect_pivoted<T, Int>(this->quoin, filled<T>(m, n, T(3)).view(), std::vector<Int>(n, 0), Work::Minimal);
        Matrix<T> equal = filled<T>(m, n, T(3));
        jpvt.assign(n, 0);
        this->quoin.geqp3(equal.view(), jpvt, Work::Minimal);
        EXPECT_EQ(jpvt[0], 1);
    }
}

TYPED_TEST(LapackPivoted, NanReturns) {
    using T = typename TestFixture::T;
    using Int = typename TestFixture::Int;
    for (const auto& [m, n] : {std::pair<Index, Index>{3000, 40}, {200, 200}, {40, 70}, {4, 3}}) {
        for (const bool is_fixed : {false, true}) {
            for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
                Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
                A(m / 2, n / 2) = bad;
                std::vector<Int> jpvt(n, 0);
                if (is_fixed) jpvt[n / 2] = 1;
                this->quoin.geqp3(A.view(), jpvt, Work::Queried);
                std::sort(jpvt.begin(), jpvt.end());
                for (Index j = 0; j < n; ++j) EXPECT_EQ(jpvt[j], j + 1);
                EXPECT_FALSE(std::isfinite(frobenius_norm<T>(A.view())));
            }
        }
    }
}

template <class T>
class PivotedExchange : public Exchange<T> {};
TYPED_TEST_SUITE(PivotedExchange, Precisions);

TYPED_TEST(PivotedExchange, PivotsAreTheSystems) {
    using T = TypeParam;
    using Int = std::int32_t;
    // from R, greedy panels for columns near overflow, and passed on
    for (const auto& [m, n] : {std::pair<Index, Index>{1000, 60}, {4000, 100}, {200, 70}, {40, 90}}) {
        for (const bool is_fixed : {false, true}) {
            const Matrix<T> A = generate<T>(Gallery::RandomNormal, m, n);
            Matrix<T> mine = copy<T>(A.view()), theirs = copy<T>(A.view());
            if (m < 1000) {
                for (Index j = 0; j < n; ++j) {
                    for (Index i = 0; i < m; ++i)
                        mine(i, j) = std::ldexp(mine(i, j), std::numeric_limits<T>::max_exponent - 8);
                }
            }
            auto jpvt = is_fixed ? fixed_columns<Int>(n, 3, 17) : std::vector<Int>(n, 0), expected = jpvt;
            this->quoin.geqp3(mine.view(), jpvt, Work::Queried);
            this->system.geqp3(theirs.view(), expected, Work::Queried);
            EXPECT_EQ(jpvt, expected) << m << " x " << n;
            for (Index j = 0; j < std::min(m, n); ++j) EXPECT_EQ(mine(j, j) < 0, theirs(j, j) < 0) << j;
        }
    }
}

TYPED_TEST(PivotedExchange, IllegalArgumentsAreReportedAsTheSystemDoes) {
    using T = TypeParam;
    using Int = std::int32_t;
    T A[16] = {}, tau[4] = {}, work[512];
    Int jpvt[4] = {};
    struct Geqp3 {
        Int m, n, lda, lwork, argument;
    };
    for (const Geqp3& c : {Geqp3{-1, 0, 1, 1, 1},
                           {0, -1, 1, 1, 2},
                           {2, 1, 1, 4, 4},
                           {2, 2, 2, 6, 8},
                           {0, 2, 1, 0, 8},
                           {2, 0, 2, 0, 8}}) {
        this->expect_refusal("GEQP3", c.argument, [&](const auto& f, Int* info) {
            f.geqp3(&c.m, &c.n, A, &c.lda, jpvt, tau, work, &c.lwork, info);
        });
    }
}

TYPED_TEST(PivotedExchange, AQueryWritesWorkAlone) {
    using T = TypeParam;
    const std::int32_t m = 1 << 20, n = 300001, query = -1;
    T work = -1, untouched = 3;
    std::int32_t info = 99, jpvt = 5;
    for (const auto* lapack : {&this->quoin, &this->system}) {
        lapack->f.geqp3(&m, &n, &untouched, &m, &jpvt, &untouched, &work, &query, &info);
        EXPECT_EQ(info, 0);
        EXPECT_GE(static_cast<double>(work), 3.0 * n + 1);
    }
    EXPECT_EQ(untouched, 3);
    EXPECT_EQ(jpvt, 5);
}

}  // namespace
}  // namespace quoin::test
