// Online robust PCA: what it recovers from a stream, what it forgets, and its interface.

#include "quoin/apps/online_robust_pca.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "quoin/error.hpp"

namespace quoin::test {
namespace {

/// Columns of rank 2 with noise of 0.01 and, in 5% of the entries, ±1, which stay for ten columns.
template <class T>
class Stream {
public:
    explicit Stream(Index rows, double noise = 0.01)
        : rows_(rows), noise_(noise), u_(size()), v_(size()), left_(size()) {
        outliers.assign(size(), 0);
        for (T& x : u_) x = static_cast<T>(1 + 0.2 * normal_(random_));
        for (T& x : v_) x = static_cast<T>(0.5 * normal_(random_));
    }
    void next() {
        low.assign(size(), 0);
        column.assign(size(), 0);
        const double a = 1 + 0.1 * normal_(random_), b = normal_(random_);
        for (std::size_t i = 0; i < size(); ++i) {
            low[i] = static_cast<T>(a) * u_[i] + static_cast<T>(b) * v_[i];
            if (left_[i] > 0 && --left_[i] == 0) outliers[i] = 0;
            if (left_[i] == 0 && random_() % 200 == 0) {
                outliers[i] = random_() % 2 == 0 ? 1 : -1;
                left_[i] = 10;
            }
            column[i] = low[i] + static_cast<T>(outliers[i]) + static_cast<T>(noise_ * normal_(random_));
        }
    }
    std::vector<T> low, column;
    std::vector<int> outliers;

private:
    std::size_t size() const { return static_cast<std::size_t>(rows_); }
    Index rows_;
    double noise_;
    std::mt19937 random_{3};
    std::normal_distribution<double> normal_;
    std::vector<T> u_, v_;
    std::vector<int> left_;
};

template <class T>
class OnlineRobustPcaTest : public testing::Test {
protected:
    Context<Host> ctx{2};
    std::vector<T> l, s;
    void next(OnlineRobustPca<T>& pca, const std::vector<T>& m) {
        l.assign(m.size(), std::numeric_limits<T>::quiet_NaN());
        s.assign(m.size(), std::numeric_limits<T>::quiet_NaN());
        pca.next(ctx, m, l, s);
    }
};
TYPED_TEST_SUITE(OnlineRobustPcaTest, Scalars);

TYPED_TEST(OnlineRobustPcaTest, TellsLowRankFromSparseAndFromNoise) {
    using T = TypeParam;
    const Index rows = 600;
    Stream<T> stream(rows);
    OnlineRobustPca<T> pca(rows, {.threshold = 0.1});
    Index right = 0, wrong = 0, missed = 0;
    double mean_square = 0;
    for (Index t = 1; t <= 500; ++t) {
        stream.next();
        this->next(pca, stream.column);
        EXPECT_EQ(pca.columns(), t);
        ASSERT_LE(pca.rank(), 4);
        if (t <= 450) continue;
        double error = 0;
        for (std::size_t i = 0; i < stream.low.size(); ++i) {
            error += std::pow(static_cast<double>(this->l[i] - stream.low[i]), 2);
            const bool found = this->s[i] != 0, is = stream.outliers[i] != 0;
            right += found && is;
            wrong += found && !is;
            missed += !found && is;
            if (found) {
                ASSERT_EQ(this->s[i], stream.column[i] - this->l[i]);
            }
        }
        mean_square += error / 50 / static_cast<double>(rows);
    }
    // the first columns are forgotten; of the noise, rank 2 of 100 remembered columns is left: √(2/100) and as much for
    // outliers
    EXPECT_LE(std::sqrt(mean_square), 0.01 / 2);
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(50 * missed, right) << "entries that change again and again";
    EXPECT_EQ(pca.rank(), 2);
    double noise = 0;
    for (const float value : pca.noise()) noise += static_cast<double>(value) / static_cast<double>(rows);
    EXPECT_NEAR(noise / 0.01, 1, 0.35) << "the larger of two estimates, a few of them under outliers";

    // ‖I − UᵀU‖ in units of n·u, beyond the column at which U is made orthonormal anew
    const MatrixView<const T> U = pca.basis();
    ASSERT_EQ(U.cols, 2);
    double departure = 0;
    for (Index j = 0; j < 2; ++j) {
        for (Index k = 0; k < 2; ++k) {
            double product = j == k ? -1 : 0;
            for (Index i = 0; i < rows; ++i) product += static_cast<double>(U(i, j)) * static_cast<double>(U(i, k));
            departure += product * product;
        }
    }
    // each column rounds U once, by O(u): 244 since the last time, as a random walk
    EXPECT_LE(std::sqrt(departure), 244 * 2 * unit_roundoff<T>);
    ASSERT_EQ(pca.singular_values().size(), 2u);
    EXPECT_GE(pca.singular_values()[0], pca.singular_values()[1]);
}

TYPED_TEST(OnlineRobustPcaTest, ASceneThatIsStillHasRankOneAndNoForeground) {
    using T = TypeParam;
    std::vector<T> still(500);
    for (std::size_t i = 0; i < still.size(); ++i) still[i] = static_cast<T>(0.2 + 0.001 * static_cast<double>(i));
    OnlineRobustPca<T> pca(500);
    for (int t = 0; t < 40; ++t) {
        this->next(pca, still);
        for (std::size_t i = 0; i < still.size(); ++i) {
            ASSERT_NEAR(this->l[i], still[i], 1e-3) << "the tolerance of the first pursuits";
            ASSERT_EQ(this->s[i], 0);
        }
    }
    EXPECT_EQ(pca.rank(), 1);
}

TYPED_TEST(OnlineRobustPcaTest, WhatStaysIsForgottenAtTheRateAsked) {
    using T = TypeParam;
    const auto foreground_for = [&](double forget) {
        std::vector<T> m(400, T(0.5));
        OnlineRobustPca<T> pca(400, {.forget = forget, .start = 4});
        Index seen = 0;
        for (int t = 0; t < 120; ++t) {
            if (t == 40) std::fill_n(m.begin(), 20, T(0.9));
            this->next(pca, m);
            seen += this->s[3] != 0;
        }
        return seen;
    };
    // as soon as an age of 1/forget is reached, the difference goes into the background
    EXPECT_NEAR(static_cast<double>(foreground_for(0.1)), 10, 2);
    EXPECT_NEAR(static_cast<double>(foreground_for(0.04)), 25, 2);
    EXPECT_EQ(foreground_for(0), 80) << "never";
    EXPECT_EQ(foreground_for(0.01), 80);
}

/// An object of `width` rows that covers `step` others with each column. A row is under it in ⌈width/step⌉ or one fewer
/// columns, in turn: among 32 columns with width/step = 16 every other row has its median on the object.
TYPED_TEST(OnlineRobustPcaTest, WhatIsThereAtFirstAndLeavesIsNoBackground) {
    using T = TypeParam;
    const Index rows = 400, columns = 60;
    for (const auto& [width, step] : {std::pair<Index, Index>{31, 2}, {32, 2}, {33, 2}, {23, 1}}) {
        SCOPED_TRACE(testing::Message() << width << " rows, " << step << " a column");
        OnlineRobustPca<T> pca(rows);
        const Index last_covered = (width + step - 1) / step;
        std::mt19937 random(11);
        std::normal_distribution<double> normal;
        for (Index t = 0; t < columns; ++t) {
            std::vector<T> background(rows), m(rows);
            for (Index i = 0; i < rows; ++i) {
                const auto at = static_cast<std::size_t>(i);
                background[at] = static_cast<T>(0.4 + 0.1 * std::sin(0.05 * static_cast<double>(i)));
                const Index from = i - 50 - step * t;
                m[at] = 0 <= from && from < width ? T(0.9) : background[at] + static_cast<T>(0.005 * normal(random));
            }
            this->next(pca, m);
            // a row that the object covers in k of the first 2k columns shows more of the background in the one after
            // them
            if (t < std::max<Index>(32, 2 * last_covered) + 1) continue;
            for (Index i = 0; i < rows; ++i) {
                const auto at = static_cast<std::size_t>(i);
                ASSERT_NEAR(this->l[at], background[at], 0.04) << "row " << i << ", column " << t;
                ASSERT_EQ(this->s[at] != 0, m[at] == T(0.9)) << "row " << i << ", column " << t;
            }
        }
    }
}

TYPED_TEST(OnlineRobustPcaTest, AnotherSceneIsTakenAtOnce) {
    using T = TypeParam;
    std::vector<T> one(300), other(300);
    for (std::size_t i = 0; i < one.size(); ++i) {
        one[i] = static_cast<T>(0.2 + 0.002 * static_cast<double>(i));
        other[i] = static_cast<T>(0.8 - 0.3 * static_cast<double>(i % 7) / 7);
    }
    OnlineRobustPca<T> pca(300, {.start = 8});
    for (int t = 0; t < 20; ++t) this->next(pca, one);
    for (int t = 0; t < 3; ++t) this->next(pca, other);
    EXPECT_EQ(std::count(this->s.begin(), this->s.end(), T(0)), 300);
}

TYPED_TEST(OnlineRobustPcaTest, HasTheSameBitsForAnyNumberOfThreads) {
    using T = TypeParam;
    const auto last_columns = [](int threads) {
        Context<Host> ctx(threads);
        Stream<T> stream(20000);
        OnlineRobustPca<T> pca(20000, {.threshold = 0.1, .start = 4});
        std::vector<T> l(20000), s(20000), all;
        for (int t = 0; t < 8; ++t) {
            stream.next();
            pca.next(ctx, stream.column, l, s);
            all.insert(all.end(), l.begin(), l.end());
            all.insert(all.end(), s.begin(), s.end());
        }
        return all;
    };
    const auto one = last_columns(1);
    EXPECT_EQ(one, last_columns(2));
    EXPECT_EQ(one, last_columns(4));
}

TYPED_TEST(OnlineRobustPcaTest, ContinuesFromItsStateWithTheSameBits) {
    using T = TypeParam;
    Context<Host> ctx(1);
    Stream<T> stream(500);
    const OnlineRobustPcaOptions options{.threshold = 0.1, .start = 4};
    OnlineRobustPca<T> pca(500, options);
    std::vector<T> l(500), s(500), other_l(500), other_s(500);
    for (int t = 0; t < 8; ++t) {
        OnlineRobustPca<T> other(ctx, 500, options, pca.state(ctx));
        stream.next();
        pca.next(ctx, stream.column, l, s);
        other.next(ctx, stream.column, other_l, other_s);
        EXPECT_EQ(l, other_l);
        EXPECT_EQ(s, other_s);
        EXPECT_EQ(pca.singular_values(), other.singular_values());
    }
    auto broken = pca.state(ctx);
    broken.noise = Matrix<float>(499, 1);
    EXPECT_THROW(OnlineRobustPca<T>(ctx, 500, options, broken), InvalidArgument);
}

TYPED_TEST(OnlineRobustPcaTest, FramesOfBytesAreColumns) {
    using T = TypeParam;
    OnlineRobustPca<T> pca(300, {.start = 4}), same(300, {.start = 4});
    EXPECT_TRUE(pca.noise().empty());
    std::vector<std::uint8_t> bytes(300), l(300, 7), s(300, 7), untouched(300, 7);
    std::vector<T> m(300);
    const auto byte_of = [](T x) {
        return static_cast<std::uint8_t>(std::lround(255 * std::min(1.0, std::abs(static_cast<double>(x)))));
    };
    for (std::size_t t = 0; t < 8; ++t) {
        for (std::size_t i = 0; i < m.size(); ++i) {
            const bool object = i / 20 == t;
            bytes[i] = static_cast<std::uint8_t>(object ? 250 - 240 * (t % 2) : 80 + i * i % 50);
            m[i] = static_cast<T>(bytes[i]) / T(255);
        }
        this->next(same, m);
        pca.next_frame(this->ctx, bytes, l, {});
        for (std::size_t i = 0; i < m.size(); ++i) {
            ASSERT_EQ(pca.frame_low_rank()[i], this->l[i]);
            ASSERT_EQ(pca.frame_sparse()[i], this->s[i]);
            ASSERT_EQ(pca.residual()[i], m[i] - this->l[i]);
            ASSERT_EQ(l[i], byte_of(this->l[i]));
        }
        EXPECT_EQ(s, untouched) << "not asked for";
    }
    this->next(same, m);
    pca.next_frame(this->ctx, bytes, {}, s);
    for (std::size_t i = 0; i < m.size(); ++i) ASSERT_EQ(s[i], byte_of(this->s[i]));
    EXPECT_THROW(pca.next_frame(this->ctx, std::span(bytes).first(299), l, s), InvalidArgument);
    EXPECT_THROW(pca.next_frame(this->ctx, bytes, std::span(l).first(1), s), InvalidArgument);
    EXPECT_THROW(pca.next_frame(this->ctx, bytes, l, std::span(s).first(1)), InvalidArgument);
    EXPECT_EQ(pca.columns(), 9);
}

TYPED_TEST(OnlineRobustPcaTest, RefusesWhatIsOutOfRange) {
    using T = TypeParam;
    using Pca = OnlineRobustPca<T>;
    EXPECT_THROW(Pca(0), InvalidArgument);
    EXPECT_THROW(Pca(5, {.max_rank = 0}), InvalidArgument);
    EXPECT_THROW(Pca(5, {.forget = 1}), InvalidArgument);
    EXPECT_THROW(Pca(5, {.forget = -0.1}), InvalidArgument);
    EXPECT_THROW(Pca(5, {.threshold = 0}), InvalidArgument);
    EXPECT_THROW(Pca(5, {.start = 0}), InvalidArgument);
    Pca pca(5);
    EXPECT_EQ(pca.rank(), 0);
    EXPECT_THROW(this->next(pca, std::vector<T>(4)), InvalidArgument);
    std::vector<T> bad(5, T(1));
    bad[3] = std::numeric_limits<T>::infinity();
    EXPECT_THROW(this->next(pca, bad), NonFiniteEntry);
    EXPECT_EQ(pca.columns(), 0) << "nothing of it was taken";
    // black, then something
    this->next(pca, std::vector<T>(5));
    EXPECT_EQ(pca.rank(), 0);
    for (int t = 0; t < 5; ++t) this->next(pca, std::vector<T>(5, T(0.5)));
    EXPECT_EQ(this->s, std::vector<T>(5));
}

}  // namespace
}  // namespace quoin::test
