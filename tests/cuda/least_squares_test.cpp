// Least squares on the GPU obeys the law of the host, and the steps of it that are the GPU's own agree with the host's.

#include "quoin/least_squares.hpp"

#include <fmt/format.h>

#include <tuple>

#include "devices.hpp"
#include "gallery.hpp"
#include "gpu.hpp"
#include "least_squares_law.hpp"

namespace quoin::test {
namespace {

template <class T>
class GpuLeastSquares : public OnGpu {
protected:
    /// Operands in padded memory, which is left alone; the solution is brought to the host.
    LeastSquares<T> solve(MatrixView<const T> A, MatrixView<const T> B, double rcond = -1, Options options = {}) {
        GpuPadded<T> gA(gpu(), A), gB(gpu(), B);
        auto solution = least_squares<T, Cuda>(gpu(), gA.view(), gB.view(), {.rcond = rcond}, options);
        EXPECT_TRUE(same_bits<T>(gA.fetch(gpu()).view(), A));
        EXPECT_TRUE(same_bits<T>(gB.fetch(gpu()).view(), B));
        EXPECT_GE(solution.report.seconds, 0);
        return on_host(std::move(solution));
    }
    LeastSquares<T> on_host(LeastSquares<T, Cuda>&& solution) {
        return {.X = copy_to_host<T>(gpu(), solution.X.view()),
                .residual_norms = std::move(solution.residual_norms),
                .condition = solution.condition,
                .rank = solution.rank,
                .report = solution.report};
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuLeastSquares, Precisions);

TYPED_TEST(GpuLeastSquares, GradientAndResidualNormsObeyTheLaw) {
    using T = TypeParam;
    const struct {
        Index m, n, p;
    } shapes[] = {{1, 1, 1}, {5, 5, 2}, {67, 33, 5}, {quick() ? 300 : 3001, 20, 2}, {700, 100, 3}};
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::GradedColumnsDown, Gallery::ClusteredScales,
                                       Gallery::Orthogonal, Gallery::NearOverflow, Gallery::SingleLargeEntry}) {
        for (const auto& [m, n, p] : shapes) {
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            if (quick() && m * n > 10000) continue;
            const Matrix<T> A = generate<T>(matrix_class, m, n), B = random_normal<T>(m, p, 7);
            expect_least_squares_law<T>(A.view(), B.view(), this->solve(A.view(), B.view()));
        }
    }
}

TYPED_TEST(GpuLeastSquares, EveryHolderOfQSolves) {
    using T = TypeParam;
    const Index m = 500, n = 40;
    const Matrix<T> A = with_condition<T>(m, n, 1e2), B = random_normal<T>(m, 3, 7);
    for (const Method method : {Method::Auto, Method::BlockedHouseholder, Method::CAQR, Method::CholeskyQR2}) {
        for (const QForm q : {QForm::Any, QForm::Explicit, QForm::Reflectors}) {
            SCOPED_TRACE(fmt::format("{} {}", to_string(method), to_string(q)));
            Options options;
            options.method = method;
            options.q = q;
            const auto solution = this->solve(A.view(), B.view(), -1, options);
            expect_least_squares_law<T>(A.view(), B.view(), solution);
            EXPECT_GE(solution.condition, 1e2 / n);
            EXPECT_LE(solution.condition, 1.1e2 * n);
            // and a factorization that serves again
            const auto gA = copy_to_device<T>(this->gpu(), A.view()), gB = copy_to_device<T>(this->gpu(), B.view());
            const auto f = qr<T, Cuda>(this->gpu(), gA.view(), options);
            expect_least_squares_law<T>(A.view(), B.view(),
                                        this->on_host(least_squares<T, Cuda>(this->gpu(), f, gB.view())));
        }
    }
}

TYPED_TEST(GpuLeastSquares, ConsistentSystemsHaveResidualsOfRoundoff) {
    using T = TypeParam;
    const Matrix<T> A = with_condition<T>(90, 12, 1e3), X = random_normal<T>(12, 4, 3);
    const Matrix<T> B = product<T>(A.view(), X.view());
    const auto solution = this->solve(A.view(), B.view());
    EXPECT_LE(least_squares_errors<T>(A.view(), B.view(), solution.X.view(), solution.residual_norms).residual,
              least_squares_law);
    const Matrix<T> S = random_normal<T>(30, 30), C = random_normal<T>(30, 2, 5);
    for (const QForm q : {QForm::Any, QForm::Explicit}) {
        Options options;
        options.q = q;
        EXPECT_EQ(this->solve(S.view(), C.view(), -1, options).residual_norms, std::vector<T>(2, 0)) << "square";
    }
}

TYPED_TEST(GpuLeastSquares, ResidualNormsOfLargeAndSmallRightHandSides) {
    using T = TypeParam;
    const Index m = 60, n = 5;
    const Matrix<T> A = random_normal<T>(m, n);
    Matrix<T> B = random_normal<T>(m, 2, 5);
    for (Index i = 0; i < m; ++i) {
        B(i, 0) = static_cast<T>(B(i, 0) * std::pow(10.0, graded_exponent<T>));
        B(i, 1) = static_cast<T>(B(i, 1) * std::pow(10.0, -graded_exponent<T>));
    }
    expect_least_squares_law<T>(A.view(), B.view(), this->solve(A.view(), B.view()));
}

TYPED_TEST(GpuLeastSquares, UnderdeterminedSolutionIsTheShortest) {
    using T = TypeParam;
    const struct { Index m, n, p; } shapes[] = {{1, 2, 1}, {20, 21, 1}, {33, 200, 5}, {8, quick() ? 200 : 2000, 1}};
    for (const double kappa : {1.0, 1e3}) {
        for (const auto& [m, n, p] : shapes) {
            SCOPED_TRACE(fmt::format("{}x{} kappa {}", m, n, kappa));
            const Matrix<T> A = with_condition<T>(m, n, kappa), Y = random_normal<T>(m, p, 3);
            const Matrix<T> X = product<T>(transposed<T>(A.view()).view(), Y.view());
            const Matrix<T> B = product<T>(A.view(), X.view());
            const auto solution = this->solve(A.view(), B.view());
            EXPECT_LE(difference<T>(solution.X.view(), X.view(), m, kappa * frobenius_norm<T>(X.view())),
                      least_squares_law);
            EXPECT_EQ(solution.residual_norms, std::vector<T>(p, 0));
            const auto errors = least_squares_errors<T>(A.view(), B.view(), solution.X.view(), solution.residual_norms);
            EXPECT_LE(errors.residual, least_squares_law) << "AX = B";
        }
    }
}

TYPED_TEST(GpuLeastSquares, RefusesRankDeficiencyOnRequest) {
    using T = TypeParam;
    const auto refuse = [&](const Matrix<T>& A, const Matrix<T>& B, double rcond = -1) {
        const auto gA = copy_to_device<T>(this->gpu(), A.view()), gB = copy_to_device<T>(this->gpu(), B.view());
        return least_squares<T, Cuda>(this->gpu(), gA.view(), gB.view(), {.rcond = rcond, .refuse_deficient = true});
    };
    const Matrix<T> B = random_normal<T>(60, 2, 5), B_wide = random_normal<T>(12, 2, 5);
    for (const Gallery matrix_class :
         {Gallery::RankDeficientExact, Gallery::RankDeficientNumerical, Gallery::ZeroFirstColumn,
          Gallery::ZeroSomeColumns, Gallery::Zero, Gallery::DuplicateColumns}) {
        SCOPED_TRACE(to_string(matrix_class));
        const Matrix<T> A = generate<T>(matrix_class, 60, 12), wide = transposed<T>(A.view());
        try {
            refuse(A, B);
            ADD_FAILURE() << "no RankDeficient";
        } catch (const RankDeficient& e) {
            EXPECT_LE(e.rcond, 10 * unit_roundoff<T>);
            EXPECT_NE(std::string(e.what()).find("60x12"), std::string::npos) << e.what();
        }
        EXPECT_THROW(refuse(wide, B_wide), RankDeficient);
    }
    const Matrix<T> A = with_condition<T>(60, 6, 1e4);
    EXPECT_NO_THROW(refuse(A, B, 1e-7));
    EXPECT_THROW(refuse(A, B, 1e-2), RankDeficient);
}

TYPED_TEST(GpuLeastSquares, EmptyShapesAndBadArguments) {
    using T = TypeParam;
    const auto shapes = [&](Index m, Index n, Index p) {
        return this->solve(random_normal<T>(m, n).view(), random_normal<T>(m, p, 2).view());
    };
    EXPECT_EQ(shapes(0, 0, 2).residual_norms, std::vector<T>(2, 0));
    EXPECT_EQ(shapes(3, 0, 1).X.rows(), 0);
    EXPECT_TRUE(same_bits<T>(shapes(0, 3, 2).X.view(), filled<T>(3, 2, 0).view()));
    EXPECT_TRUE(shapes(10, 4, 0).residual_norms.empty());
    EXPECT_EQ(shapes(4, 10, 0).X.rows(), 10);
    EXPECT_THROW(this->solve(random_normal<T>(9, 4).view(), random_normal<T>(8, 1).view()), InvalidArgument);
    Matrix<T> bad = random_normal<T>(20, 2);
    bad(7, 1) = std::numeric_limits<T>::infinity();
    try {
        this->solve(random_normal<T>(20, 4).view(), bad.view());
        ADD_FAILURE() << "no NonFiniteEntry";
    } catch (const NonFiniteEntry& e) {
        EXPECT_EQ(e.row, 7);
        EXPECT_EQ(e.col, 1);
    }
}

TYPED_TEST(GpuLeastSquares, ConditionEstimates) {
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    const auto condition = [&](const Matrix<T>& R) {
        GpuPadded<T> gR(this->gpu(), R.view());
        return condition_estimate<T>(this->gpu(), gR.view());
    };
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::UpperTriangular, Gallery::Kahan,
                                       Gallery::NearCollinear4, Gallery::ClusteredScales}) {
        for (const Index n : {1, 2, 5, 33, 150}) {
            SCOPED_TRACE(fmt::format("{} {}", to_string(matrix_class), n));
            const Matrix<T> R = qr(this->host, generate<T>(matrix_class, n, n).view()).r();
            const double on_host = condition_estimate<T>(this->host, R.view());
            // both solve with a componentwise backward error of n·u in double; the host's is from below
            const double slack = std::min(1.0, 20 * n * unit_roundoff<double> * on_host);
            EXPECT_GE(condition(R), (1 - slack) * on_host);
            EXPECT_LE(condition(R), (3 + slack) * on_host);
        }
    }
    // [1 0 1; 0 1 1; 0 0 1], κ₁ = 9, at any scale; the lower triangle is nobody's business
    Matrix<T> R = filled<T>(3, 3, nan);
    for (const T scale :
         {T(1), std::ldexp(T(1), std::numeric_limits<T>::max_exponent - 1), std::numeric_limits<T>::denorm_min()}) {
        for (Index j = 0; j < 3; ++j) {
            for (Index i = 0; i <= j; ++i) R(i, j) = i == j || j == 2 ? scale : T(0);
        }
        EXPECT_NEAR(condition(R), 9, 1e-12) << scale;
    }
    R(1, 1) = 0;
    EXPECT_EQ(condition(R), std::numeric_limits<double>::infinity());
    R(0, 1) = nan;
    EXPECT_TRUE(std::isnan(condition(R)));
    EXPECT_EQ(condition(Matrix<T>(0, 0)), 1);
    EXPECT_EQ(condition(filled<T>(4, 4, 0)), std::numeric_limits<double>::infinity());
    EXPECT_THROW(condition(Matrix<T>(3, 4)), InvalidArgument);
}

using GpuMixedPrecision = OnGpu;

TEST_F(GpuMixedPrecision, ObeysTheLawOfF64OrFallsBack) {
    const LeastSquaresOptions mixed{.mixed_precision = true};
    for (const auto& [m, n, p] : {std::tuple<Index, Index, Index>{500, 40, 1}, {900, 300, 3}, {1500, 701, 1}}) {
        for (const double kappa : {1.0, 1e3}) {
            SCOPED_TRACE(fmt::format("{}x{} kappa {}", m, n, kappa));
            Matrix<double> A = with_condition<double>(m, n, kappa);
            const Matrix<double> B = random_normal<double>(m, p, 7);
            const auto solved = [&] {
                const auto gA = copy_to_device<double>(gpu(), A.view()), gB = copy_to_device<double>(gpu(), B.view());
                return least_squares<double, Cuda>(gpu(), gA.view(), gB.view(), mixed);
            };
            const auto f = solved();
            EXPECT_EQ(f.refinement.fell_back, "");
            EXPECT_GT(f.refinement.steps, 0);
            const Matrix<double> X = copy_to_host<double>(gpu(), f.X.view());
            const auto errors = least_squares_errors<double>(A.view(), B.view(), X.view(), f.residual_norms);
            EXPECT_LE(errors.gradient, least_squares_law);
            EXPECT_LE(errors.residual_norm, least_squares_law);
            std::copy_n(A.view().at(0, 1), m, A.view().at(0, n - 1));
            EXPECT_NE(solved().refinement.fell_back, "") << "equal columns";
        }
    }
}

TYPED_TEST(GpuLeastSquares, NormsAndEquality) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{0, 2}, {1, 1}, {1000, 7}, {4097, 3}}) {
        Matrix<T> A = random_normal<T>(m, n);
        const double extremes[] = {1, graded_exponent<T> * 1.0, -graded_exponent<T> * 1.0};
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) A(i, j) = static_cast<T>(A(i, j) * std::pow(10.0, extremes[j % 3]));
        }
        GpuPadded<T> gA(this->gpu(), A.view());
        std::vector<T> norms(n, T(-1)), expected(n);
        column_norms<T>(this->gpu(), gA.view(), norms);
        column_norms<T>(this->host, A.view(), expected);
        for (Index j = 0; j < n; ++j) EXPECT_NEAR(norms[j], expected[j], 50 * unit_roundoff<T> * expected[j]);
        const auto again = copy_to_device<T>(this->gpu(), A.view());
        EXPECT_TRUE(equal<T>(this->gpu(), gA.view(), again.view()));
        if (m * n == 0) continue;
        A(m - 1, n - 1) = -A(m - 1, n - 1);
        const auto other = copy_to_device<T>(this->gpu(), A.view());
        EXPECT_FALSE(equal<T>(this->gpu(), gA.view(), other.view()));
    }
}

}  // namespace
}  // namespace quoin::test
