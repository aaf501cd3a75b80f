// Least squares of batches obey the law of single ones, whatever their neighbours are.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "least_squares_law.hpp"
#include "quoin/batch.hpp"
#include "quoin/error.hpp"

namespace quoin::test {
namespace {

struct Shape {
    Index m, n;
};
/// Both sides of every edge of Tuning<Host>::in_lanes and solved_in_lanes, tall, square and wide.
constexpr Shape shapes[] = {{1, 1},     {3, 3},     {7, 2},     {16, 8},   {5, 1},    {33, 32},  {64, 64},  {65, 65},
                            {128, 128}, {129, 128}, {260, 193}, {2048, 8}, {2049, 7}, {129, 64}, {200, 90}, {2, 7},
                            {8, 16},    {1, 5},     {32, 33},   {64, 80},  {16, 512}, {70, 200}};
/// Classes of full rank, whatever the scales of their columns.
const Gallery full_rank[] = {Gallery::RandomNormal,    Gallery::GradedColumnsDown, Gallery::GradedColumnsUp,
                             Gallery::ClusteredScales, Gallery::Orthogonal,        Gallery::NearOverflow};

template <class T>
class BatchLeastSquares : public testing::Test {
protected:
    Context<Host> ctx{2};

    struct Problems {
        std::vector<Matrix<T>> A, B;
        void add(Matrix<T> A_, Matrix<T> B_) {
            A.push_back(std::move(A_));
            B.push_back(std::move(B_));
        }
    };
    static BatchView<const T> of(const std::vector<Matrix<T>>& matrices) {
        std::vector<MatrixView<const T>> views;
        for (const auto& A : matrices) views.push_back(A.view());
        return BatchView<const T>(std::move(views));
    }
    /// A batch of this matrix alone.
    static BatchView<const T> only(const Matrix<T>& A) {
        return {A.data(), A.rows(), A.cols(), A.ld(), A.rows() * A.cols(), 1};
    }
    /// `count` matrices side by side.
    static BatchView<const T> in(const Matrix<T>& all, Index n) {
        return {all.data(), all.rows(), n, all.ld(), all.rows() * n, all.cols() / n};
    }
    static Options unchecked() {
        Options options;
        options.check_finite = false;
        return options;
    }
    static std::vector<T> column(MatrixView<const T> x) { return {x.data, x.data + x.rows}; }

    void expect_law(const BatchView<const T>& A, const BatchView<const T>& B, BatchedLeastSquares<T>& s) {
        ASSERT_EQ(s.X.count(), A.count());
        for (Index b = 0; b < A.count(); ++b) {
            SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, A.rows(b), A.cols(b)));
            const MatrixView<const T> Ab(A.data(b), A.rows(b), A.cols(b), A.col_stride(b)),
                Bb(B.data(b), B.rows(b), B.cols(b), B.col_stride(b));
            ASSERT_TRUE(s.X[b].rows == Ab.cols && s.X[b].cols == Bb.cols && s.residual_norms[b].rows == Bb.cols);
            EXPECT_TRUE(is_finite<T>(s.X[b]));
            const auto norms = column(s.residual_norms[b]);
            const auto errors = least_squares_errors<T>(Ab, Bb, s.X[b], norms);
            EXPECT_LE(errors.residual_norm, least_squares_law) << "ρ = ‖b − Ax‖";
            if (Ab.rows > Ab.cols) {
                EXPECT_LE(errors.gradient, least_squares_law) << "Aᵀ(b − Ax) = 0";
            } else {
                EXPECT_LE(errors.residual, least_squares_law) << "Ax = b";
                EXPECT_EQ(norms, std::vector<T>(Bb.cols, 0));
            }
        }
    }
    void expect_same(BatchedLeastSquares<T>& s, Index b, BatchedLeastSquares<T>& t, Index c) {
        EXPECT_TRUE(same_bits<T>(s.X[b], t.X[c]));
        EXPECT_TRUE(same_bits<T>(s.residual_norms[b], t.residual_norms[c]));
        EXPECT_TRUE(same_bits<T>(s.conditions[b], t.conditions[c]));
    }
};
TYPED_TEST_SUITE(BatchLeastSquares, Scalars);

TYPED_TEST(BatchLeastSquares, EveryClassAndShapeInOneMixedBatch) {
    using T = TypeParam;
    typename TestFixture::Problems problems;
    Index turn = 0;
    for (const Gallery matrix_class : full_rank) {
        for (const auto& [m, n] : shapes) {
            // of a wide matrix rows of all scales leave no X within the range of T
            problems.add(m < n ? random_normal<T>(m, n, turn) : generate<T>(matrix_class, m, n),
                         random_normal<T>(m, turn % 6, turn));
            ++turn;
        }
    }
    const auto A = this->of(problems.A), B = this->of(problems.B);
    auto all = least_squares<T>(this->ctx, A, B);
    this->expect_law(A, B, all);
    for (Index b = 0; b < A.count(); ++b) {
        SCOPED_TRACE(fmt::format("matrix {}, {}x{}", b, A.rows(b), A.cols(b)));
        auto alone = least_squares<T>(this->ctx, this->only(problems.A[b]), this->only(problems.B[b]));
        this->expect_same(all, b, alone, 0);
        // κ₁ itself, or an estimate from below that is rarely less than a third of it
        const auto single = least_squares(this->ctx, problems.A[b].view(), problems.B[b].view());
        EXPECT_GE(all.conditions[b](0, 0), static_cast<T>(single.condition * (1 - 1e-3)));
        EXPECT_LE(all.conditions[b](0, 0), static_cast<T>(single.condition * 10));
    }
}

TYPED_TEST(BatchLeastSquares, TheShortestSolutionLiesInTheRangeOfTheTranspose) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{2, 7}, Shape{8, 16}, Shape{40, 44}, Shape{70, 200}}) {
        const Index count = 19;
        std::vector<Matrix<T>> As, Bs, Xs;
        for (Index b = 0; b < count; ++b) {
            As.push_back(with_condition<T>(m, n, 100.0, b + 1));
            Xs.push_back(product<T>(transposed<T>(As[b].view()).view(), random_normal<T>(m, 2, b).view()));
            Bs.push_back(product<T>(As[b].view(), Xs[b].view()));
        }
        auto s = least_squares<T>(this->ctx, this->of(As), this->of(Bs));
        this->expect_law(this->of(As), this->of(Bs), s);
        for (Index b = 0; b < count; ++b) {
            EXPECT_LE(difference<T>(s.X[b], Xs[b].view(), m, 100 * frobenius_norm<T>(Xs[b].view())), least_squares_law);
        }
    }
}

TYPED_TEST(BatchLeastSquares, RowMajorMisalignedAndOneRightSideForAll) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{16, 8}, Shape{8, 16}, Shape{90, 70}}) {
        const Index count = 21, p = 3;
        const Matrix<T> all = random_normal<T>(m, n * count), B = random_normal<T>(m, p, 5);
        const BatchView<const T> for_all(B.data(), m, p, B.ld(), 0, count);
        auto expected = least_squares<T>(this->ctx, this->in(all, n), for_all);
        this->expect_law(this->in(all, n), for_all, expected);
        // C order, one element off any alignment
        std::vector<T> rows(m * n * count + 1);
        for (Index b = 0; b < count; ++b) {
            for (Index i = 0; i < m; ++i) {
                for (Index j = 0; j < n; ++j) rows[1 + (b * m + i) * n + j] = all(i, b * n + j);
            }
        }
        auto s = least_squares<T>(this->ctx, BatchView<const T>(rows.data() + 1, m, n, n, 1, m * n, count), for_all);
        // pointers out of order
        std::vector<MatrixView<const T>> backwards, right;
        for (Index b = count; b-- > 0;) {
            backwards.push_back(all.view().col_block({b * n, (b + 1) * n}));
            right.push_back(B.view());
        }
        auto t = least_squares<T>(this->ctx, BatchView<const T>(backwards), BatchView<const T>(right));
        for (Index b = 0; b < count; ++b) {
            this->expect_same(s, b, expected, b);
            this->expect_same(t, count - 1 - b, expected, b);
        }
    }
}

TYPED_TEST(BatchLeastSquares, ThreadsDoNotChangeBits) {
    using T = TypeParam;
    Context<Host> one(1), four(4);
    for (const auto& [m, n] : shapes) {
        const Index count = 37;
        const Matrix<T> all = random_normal<T>(m, n * count), B = random_normal<T>(m, 2 * count, 3);
        auto s = least_squares<T>(one, this->in(all, n), this->in(B, 2)),
             t = least_squares<T>(four, this->in(all, n), this->in(B, 2));
        for (Index b = 0; b < count; ++b) this->expect_same(s, b, t, b);
    }
}

TYPED_TEST(BatchLeastSquares, WhatIsRefusedIsNamedAndItsNeighboursAreUnharmed) {
    using T = TypeParam;
    for (const Shape& shape : {Shape{16, 8}, Shape{8, 8}, Shape{8, 16}, Shape{90, 70}}) {
        const Index m = shape.m, n = shape.n;
        SCOPED_TRACE(fmt::format("{}x{}", m, n));
        const Index count = 20;
        Matrix<T> all = random_normal<T>(m, n * count), B = random_normal<T>(m, count, 3);
        auto clean = least_squares<T>(this->ctx, this->in(all, n), this->in(B, 1));
        const LeastSquaresOptions refusing{.refuse_deficient = true};
        const auto message = [&] {
            try {
                (void)least_squares<T>(this->ctx, this->in(all, n), this->in(B, 1), refusing);
            } catch (const Error& e) {
                return std::string(e.what());
            }
            return std::string();
        };
        // two equal rows and columns of matrix 7
        for (Index j = 0; j < n; ++j) all(1, 7 * n + j) = all(0, 7 * n + j);
        for (Index i = 0; i < m; ++i) all(i, 7 * n + 1) = all(i, 7 * n);
        EXPECT_THROW((void)least_squares<T>(this->ctx, this->in(all, n), this->in(B, 1), refusing), RankDeficient);
        EXPECT_NE(message().find("matrix 7 of the batch"), std::string::npos) << message();
        B(m - 1, 5) = std::numeric_limits<T>::infinity();
        EXPECT_THROW((void)least_squares<T>(this->ctx, this->in(all, n), this->in(B, 1), refusing), NonFiniteEntry);
        EXPECT_NE(message().find("matrix 5 of B"), std::string::npos) << message();
        all(0, 3 * n + 1) = std::numeric_limits<T>::quiet_NaN();
        try {
            (void)least_squares<T>(this->ctx, this->in(all, n), this->in(B, 1));
            FAIL() << "NaN was accepted";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, 0);
            EXPECT_EQ(e.col, 1);
            EXPECT_NE(std::string(e.what()).find("matrix 3 of the batch"), std::string::npos) << e.what();
        }
        auto s = least_squares<T>(this->ctx, this->in(all, n), this->in(B, 1), refusing, this->unchecked());
        for (Index b = 0; b < count; ++b) {
            SCOPED_TRACE(b);
            if (b == 3 || b == 5 || b == 7) {
                EXPECT_TRUE(std::isnan(s.X[b](0, 0)));
                EXPECT_TRUE(std::isnan(s.residual_norms[b](0, 0)) && std::isnan(s.conditions[b](0, 0)));
            } else {
                this->expect_same(s, b, clean, b);
            }
        }
        const Matrix<T> three = random_normal<T>(m, 3 * count);
        auto of_three = least_squares<T>(this->ctx, this->in(all, n), this->in(three, 3), refusing, this->unchecked());
        for (const Index b : {3, 7}) {
            const auto X = of_three.X[b];
            for (Index c = 0; c < 3; ++c) {
                EXPECT_TRUE(std::isnan(of_three.residual_norms[b](c, 0)));
                for (Index i = 0; i < X.rows; ++i) EXPECT_TRUE(std::isnan(X(i, c))) << i << ", " << c;
            }
        }
    }
}

TYPED_TEST(BatchLeastSquares, OfSeveralShapesTheFirstMatrixThatIsRefusedIsNamed) {
    using T = TypeParam;
    // matrices 0 and 2 are solved in lanes, 1 and 3 alone
    typename TestFixture::Problems problems;
    for (const auto& [m, n] : {Shape{8, 8}, Shape{150, 140}, Shape{8, 8}, Shape{150, 140}})
        problems.add(random_normal<T>(m, n), random_normal<T>(m, 1, 3));
    const auto message = [&] {
        try {
            (void)least_squares<T>(this->ctx, this->of(problems.A), this->of(problems.B), {.refuse_deficient = true});
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    EXPECT_EQ(message(), "");
    const auto spoil = [&](Index b) { std::fill_n(problems.A[b].data(), problems.A[b].rows(), T(0)); };
    problems.B[3](7, 0) = std::numeric_limits<T>::quiet_NaN();
    EXPECT_NE(message().find("matrix 3 of B"), std::string::npos) << message();
    spoil(2);
    EXPECT_NE(message().find("matrix 2 of the batch"), std::string::npos) << message();
    spoil(1);
    EXPECT_NE(message().find("matrix 1 of the batch"), std::string::npos) << message();
    EXPECT_THROW((void)least_squares<T>(this->ctx, qr<T>(this->ctx, this->of(problems.A)), this->of(problems.B),
                                        {.refuse_deficient = true}),
                 RankDeficient);
}

TYPED_TEST(BatchLeastSquares, EndsOfTheRange) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(20, 6), b = random_normal<T>(20, 2, 3);
    const auto times = [](const Matrix<T>& M, double factor) {
        Matrix<T> product(M.rows(), M.cols());
        for (Index i = 0; i < M.rows() * M.cols(); ++i) product.data()[i] = static_cast<T>(M.data()[i] * factor);
        return product;
    };
    typename TestFixture::Problems problems;
    const double large = 1e-2 * std::numeric_limits<T>::max(), small = 1e3 * std::numeric_limits<T>::min();
    for (const double a : {1.0, large, small}) {
        for (const double scale : {a, a == 1 ? large : a * 1e-3, a == 1 ? small : a * 10})
            problems.add(times(A, a), times(b, scale));
    }
    const auto all = this->of(problems.A), B = this->of(problems.B);
    auto s = least_squares<T>(this->ctx, all, B);
    this->expect_law(all, B, s);
}

TYPED_TEST(BatchLeastSquares, AFactorizationServesManyTimes) {
    using T = TypeParam;
    typename TestFixture::Problems problems;
    for (const auto& [m, n] : shapes) {
        if (m < n) continue;
        problems.add(random_normal<T>(m, n), random_normal<T>(m, 2, 3));
        problems.add(random_normal<T>(m, n, 2), random_normal<T>(m, 3, 4));
    }
    const auto A = this->of(problems.A), B = this->of(problems.B);
    const auto f = qr<T>(this->ctx, A);
    auto s = least_squares<T>(this->ctx, f, B), again = least_squares<T>(this->ctx, f, B);
    this->expect_law(A, B, s);
    for (Index b = 0; b < A.count(); ++b) this->expect_same(s, b, again, b);

    // refused by the lanes, solved or refused by the single one
    const Matrix<T> C = random_normal<T>(16, 4 * 3);
    Matrix<T> right = random_normal<T>(16, 3, 5);
    for (Index i = 0; i < 16; ++i) right(i, 1) *= std::numeric_limits<T>::max() / 100;
    const auto g = qr<T>(this->ctx, this->in(C, 4));
    auto far = least_squares<T>(this->ctx, g, this->in(right, 1));
    this->expect_law(this->in(C, 4), this->in(right, 1), far);
    EXPECT_THROW((void)least_squares<T>(this->ctx, g, this->in(right, 1), {.rcond = 1, .refuse_deficient = true}),
                 RankDeficient);

    const Matrix<T> wide = random_normal<T>(3, 5);
    EXPECT_THROW((void)least_squares<T>(this->ctx, qr<T>(this->ctx, this->only(wide)), this->in(right, 1)),
                 InvalidArgument);
}

TYPED_TEST(BatchLeastSquares, NothingToDo) {
    using T = TypeParam;
    auto none = least_squares<T>(this->ctx, BatchView<const T>(nullptr, 3, 3, 3, 9, 0),
                                 BatchView<const T>(nullptr, 3, 1, 3, 3, 0));
    EXPECT_EQ(none.X.count(), 0);
    typename TestFixture::Problems problems;
    problems.add(random_normal<T>(5, 3), Matrix<T>(5, 0));
    problems.add(Matrix<T>(4, 0), random_normal<T>(4, 2));
    problems.add(Matrix<T>(0, 4), Matrix<T>(0, 2));
    problems.add(Matrix<T>(0, 0), Matrix<T>(0, 1));
    const auto A = this->of(problems.A), B = this->of(problems.B);
    auto s = least_squares<T>(this->ctx, A, B);
    this->expect_law(A, B, s);
    EXPECT_TRUE(same_bits<T>(s.X[2], filled<T>(4, 2, T(0)).view()));
}

TYPED_TEST(BatchLeastSquares, RefusesWhatDoesNotFit) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(6, 4 * 3), B = random_normal<T>(6, 3), short_B = random_normal<T>(5, 3);
    EXPECT_THROW((void)least_squares<T>(this->ctx, this->in(A, 4), this->in(short_B, 1)), InvalidArgument);
    EXPECT_THROW((void)least_squares<T>(this->ctx, this->in(A, 2), this->in(B, 1)), InvalidArgument);
    EXPECT_THROW((void)least_squares<T>(this->ctx, this->in(A, 4), this->in(B, 1), {.rcond = -0.5}), InvalidArgument);
    EXPECT_THROW((void)least_squares<T>(this->ctx, this->in(A, 4), this->in(B, 1), {.rcond = 2}), InvalidArgument);
}

TYPED_TEST(BatchLeastSquares, OrthonormalizeIsTheThinQ) {
    using T = TypeParam;
    std::vector<Matrix<T>> matrices;
    for (const auto& [m, n] : shapes) matrices.push_back(random_normal<T>(m, n));
    const auto A = this->of(matrices);
    Options explicitly;
    explicitly.q = QForm::Explicit;
    const Batch<T> expected = qr<T>(this->ctx, A, explicitly).form_q(this->ctx);
    Batch<T> Q = orthonormalize<T>(this->ctx, A);
    for (Index b = 0; b < A.count(); ++b) {
        EXPECT_TRUE(same_bits<T>(Q[b], expected[b]));
        EXPECT_LE(orthogonality_error<T>(Q[b], Q[b].cols), law);
    }
}

TYPED_TEST(BatchLeastSquares, ResultsMayTakeThePlaceOfTheMatrices) {
    using T = TypeParam;
    for (const auto& [m, n] : {Shape{16, 8}, Shape{90, 70}}) {
        const Index count = 21;
        const Matrix<T> all = random_normal<T>(m, n * count);
        Matrix<T> Q = copy<T>(all.view()), V_R = copy<T>(all.view());
        const auto f = qr<T>(this->ctx, this->in(all, n));
        const Batch<T> expected = f.form_q(this->ctx);
        const BatchView<T> in_place(Q.data(), m, n, m, m * n, count), factors(V_R.data(), m, n, m, m * n, count);
        qr<T>(this->ctx, in_place).form_q(this->ctx, in_place);
        Batch<T> tau(this->ctx, n, 1, count), other(this->ctx, m, n, count);
        qr<T>(this->ctx, factors).lapack(this->ctx, factors, tau.view());
        f.lapack(this->ctx, other.view(), tau.view());
        for (Index b = 0; b < count; ++b) {
            EXPECT_TRUE(same_bits<T>(Q.view().col_block({b * n, (b + 1) * n}), expected[b]));
            EXPECT_TRUE(same_bits<T>(V_R.view().col_block({b * n, (b + 1) * n}), other[b]));
        }
    }
}

}  // namespace
}  // namespace quoin::test
