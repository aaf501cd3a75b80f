#include "quoin/least_squares.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "least_squares_law.hpp"
#include "omp_threads.hpp"
#include "quoin/streaming.hpp"

namespace quoin::test {
namespace {

template <class T>
class LeastSquaresTest : public testing::Test {
protected:
    Context<Host> ctx{2};
};
TYPED_TEST_SUITE(LeastSquaresTest, Scalars);

template <class T>
class ConditionEstimateTest : public LeastSquaresTest<T> {};
TYPED_TEST_SUITE(ConditionEstimateTest, Scalars);

/// Classes whose members have full column rank, whatever the scales of their columns.
const Gallery full_rank[] = {Gallery::RandomNormal,    Gallery::GradedColumnsDown, Gallery::GradedColumnsUp,
                             Gallery::ClusteredScales, Gallery::Orthogonal,        Gallery::NearOverflow,
                             Gallery::SingleLargeEntry};

TYPED_TEST(LeastSquaresTest, GradientAndResidualNormsObeyTheLaw) {
    using T = TypeParam;
    const struct {
        Index m, n, p;
    } shapes[] = {{1, 1, 1}, {2, 1, 3}, {5, 5, 2}, {50, 10, 1}, {67, 33, 5}, {quick() ? 300 : 3001, 20, 2}};
    for (const Gallery matrix_class : full_rank) {
        for (const auto& [m, n, p] : shapes) {
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            const Matrix<T> A = generate<T>(matrix_class, m, n), B = random_normal<T>(m, p, 7);
            expect_least_squares_law<T>(A.view(), B.view(), least_squares(this->ctx, A.view(), B.view()));
        }
    }
}

TYPED_TEST(LeastSquaresTest, HoldsForEveryConditionThatIsAccepted) {
    using T = TypeParam;
    const Index m = 120, n = 20;
    const double u = unit_roundoff<T>;
    for (const double kappa : {1.0, 1e2, 0.01 / std::sqrt(u), 0.001 / (n * u)}) {
        SCOPED_TRACE(kappa);
        const Matrix<T> A = with_condition<T>(m, n, kappa), B = random_normal<T>(m, 3, 7);
        const auto solution = least_squares(this->ctx, A.view(), B.view());
        expect_least_squares_law<T>(A.view(), B.view(), solution);
        // κ₂/n ≤ κ₁ ≤ n·κ₂, and the estimate is rarely below κ₁/3
        EXPECT_GE(solution.condition, kappa / n / 3);
        EXPECT_LE(solution.condition, 1.1 * kappa * n);
    }
}

TYPED_TEST(LeastSquaresTest, ConsistentSystemsHaveResidualsOfRoundoff) {
    using T = TypeParam;
    const Matrix<T> A = with_condition<T>(90, 12, 1e3), X = random_normal<T>(12, 4, 3);
    const Matrix<T> B = product<T>(A.view(), X.view());
    const auto solution = least_squares(this->ctx, A.view(), B.view());
    EXPECT_LE(least_squares_errors<T>(A.view(), B.view(), solution.X.view(), solution.residual_norms).residual,
              least_squares_law);
}

TYPED_TEST(LeastSquaresTest, ManyRightHandSides) {
    using T = TypeParam;
    const Index m = 150, n = 17, p = 301;
    const Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(m, p, 5);
    expect_least_squares_law<T>(A.view(), B.view(), least_squares(this->ctx, A.view(), B.view()));
}

TYPED_TEST(LeastSquaresTest, SquareSystemsHaveResidualNormsOfExactZero) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(30, 30), B = random_normal<T>(30, 2, 5);
    const auto solution = least_squares(this->ctx, A.view(), B.view());
    EXPECT_EQ(solution.residual_norms, std::vector<T>(2, 0));
    const std::vector<T> zeros(2, 0);
    EXPECT_LE(least_squares_errors<T>(A.view(), B.view(), solution.X.view(), zeros).residual, least_squares_law);
}

TYPED_TEST(LeastSquaresTest, ReadsStridedOperandsAndLeavesThemAlone) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(40, 8), B = random_normal<T>(40, 3, 5);
    const Padded<T> A_padded(A.view()), B_padded(B.view());
    const auto solution = least_squares(this->ctx, A_padded.view(), B_padded.view());
    EXPECT_TRUE(same_bits<T>(solution.X.view(), least_squares(this->ctx, A.view(), B.view()).X.view()));
    EXPECT_TRUE(same_bits<T>(A_padded.view(), A.view()) && same_bits<T>(B_padded.view(), B.view()));
    EXPECT_TRUE(A_padded.padding_intact() && B_padded.padding_intact());
}

TYPED_TEST(LeastSquaresTest, ResidualNormsOfLargeAndSmallRightHandSides) {
    using T = TypeParam;
    const Index m = 60, n = 5;
    const Matrix<T> A = random_normal<T>(m, n);
    Matrix<T> B = random_normal<T>(m, 2, 5);
    const double e = graded_exponent<T>;
    for (Index i = 0; i < m; ++i) {
        B(i, 0) = static_cast<T>(B(i, 0) * std::pow(10.0, e));
        B(i, 1) = static_cast<T>(B(i, 1) * std::pow(10.0, -e));
    }
    expect_least_squares_law<T>(A.view(), B.view(), least_squares(this->ctx, A.view(), B.view()));
}

TYPED_TEST(LeastSquaresTest, UnderdeterminedSolutionIsTheShortest) {
    using T = TypeParam;
    const struct {
        Index m, n, p;
    } shapes[] = {{1, 2, 1}, {3, 10, 2}, {20, 21, 1}, {33, 200, 5}, {8, quick() ? 200 : 2000, 1}};
    for (const double kappa : {1.0, 1e3}) {
        for (const auto& [m, n, p] : shapes) {
            SCOPED_TRACE(fmt::format("{}x{} kappa {}", m, n, kappa));
            // The solution that lies in the range of Aᵀ is the shortest: X = AᵀY.
            const Matrix<T> A = with_condition<T>(m, n, kappa), Y = random_normal<T>(m, p, 3);
            const Matrix<T> X = product<T>(transposed<T>(A.view()).view(), Y.view());
            const Matrix<T> B = product<T>(A.view(), X.view());
            const auto solution = least_squares(this->ctx, A.view(), B.view());
            ASSERT_EQ(solution.X.rows(), n);
            // ‖x − x̂‖ ≤ O(k·u)·κ·‖x‖ (Higham 2002, Theorem 21.1 with a row-wise backward error); B carries 2u·κ of it
            EXPECT_LE(difference<T>(solution.X.view(), X.view(), m, kappa * frobenius_norm<T>(X.view())),
                      least_squares_law);
            EXPECT_EQ(solution.residual_norms, std::vector<T>(p, 0));
            const auto errors = least_squares_errors<T>(A.view(), B.view(), solution.X.view(), solution.residual_norms);
            EXPECT_LE(errors.residual, least_squares_law) << "AX = B";
        }
    }
}

TYPED_TEST(LeastSquaresTest, AFactorizationServesManyTimes) {
    using T = TypeParam;
    const Matrix<T> A = with_condition<T>(80, 9, 10), B = random_normal<T>(80, 2, 5), C = random_normal<T>(80, 3, 6);
    for (const QForm q : {QForm::Any, QForm::Explicit, QForm::Reflectors}) {
        SCOPED_TRACE(to_string(q));
        Options options;
        options.q = q;
        const auto f = qr(this->ctx, A.view(), options);
        expect_least_squares_law<T>(A.view(), B.view(), least_squares(this->ctx, f, B.view()));
        expect_least_squares_law<T>(A.view(), C.view(), least_squares(this->ctx, f, C.view()));
    }
}

TYPED_TEST(LeastSquaresTest, RankDeficiencyIsAnErrorOnRequest) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{60, 12}, {1200, 100}})
        for (const Gallery matrix_class :
             {Gallery::RankDeficientExact, Gallery::RankDeficientNumerical, Gallery::ZeroFirstColumn,
              Gallery::ZeroLastColumn, Gallery::ZeroSomeColumns, Gallery::Zero, Gallery::DuplicateColumns}) {
            SCOPED_TRACE(shape_name(m, n) + " " + to_string(matrix_class));
            const Matrix<T> A = generate<T>(matrix_class, m, n), wide = transposed<T>(A.view());
            const Matrix<T> B = random_normal<T>(m, 2, 5), B_wide = random_normal<T>(n, 2, 5);
            const LeastSquaresOptions refusing{.refuse_deficient = true};
            try {
                least_squares(this->ctx, A.view(), B.view(), refusing);
                ADD_FAILURE() << "no RankDeficient";
            } catch (const RankDeficient& e) {
                EXPECT_LE(e.rcond, 10 * unit_roundoff<T>);
                EXPECT_NE(std::string(e.what()).find(shape_name(m, n)), std::string::npos) << e.what();
            }
            EXPECT_THROW(least_squares(this->ctx, wide.view(), B_wide.view(), refusing), RankDeficient);
            EXPECT_THROW(least_squares(this->ctx, qr(this->ctx, A.view()), B.view(), refusing), RankDeficient);
        }
}

TYPED_TEST(LeastSquaresTest, DependentColumnsAreNamed) {
    using T = TypeParam;
    Matrix<T> A = random_normal<T>(60, 12, 3);
    for (Index i = 0; i < 60; ++i) A(i, 10) = A(i, 2) - A(i, 7) / 2;
    const Matrix<T> wide = transposed<T>(A.view()), B = random_normal<T>(60, 1, 5), B_wide = random_normal<T>(12, 1, 5);
    const auto message = [&](const Matrix<T>& matrix, const Matrix<T>& right) -> std::string {
        try {
            least_squares(this->ctx, matrix.view(), right.view(), {.refuse_deficient = true});
        } catch (const RankDeficient& e) {
            return e.what();
        }
        return "no RankDeficient";
    };
    EXPECT_EQ(message(A, B).find("columns 2, 7 and 10 of the 60x12 matrix are linearly dependent"), 0U)
        << message(A, B);
    EXPECT_EQ(message(wide, B_wide).find("rows 2, 7 and 10 of the 12x60 matrix are linearly dependent"), 0U);
}

/// RᵀR = AᵀA (AAᵀ of a wide A), to k·u relative to ‖A‖².
TYPED_TEST(LeastSquaresTest, GivesR) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{90, 7}, {7, 7}, {7, 90}, {2000, 30}}) {
        SCOPED_TRACE(shape_name(m, n));
        const Matrix<T> A = random_normal<T>(m, n, 3), At = transposed<T>(A.view());
        const Matrix<T>& tall = m >= n ? A : At;
        const Matrix<T> B = random_normal<T>(m, 1, 5);
        const auto solution = least_squares(this->ctx, A.view(), B.view());
        ASSERT_EQ(solution.exponent, 0);
        const Index k = std::min(m, n);
        ASSERT_EQ(solution.R.rows(), k);
        ASSERT_EQ(solution.R.cols(), k);
        double squares = 0;
        for (Index i = 0; i < m * n; ++i)
            squares += static_cast<double>(A.data()[i]) * static_cast<double>(A.data()[i]);
        for (Index j = 0; j < k; ++j) {
            for (Index i = 0; i <= j; ++i) {
                double gram = 0;
                for (Index l = 0; l < tall.rows(); ++l)
                    gram += static_cast<double>(tall(l, i)) * static_cast<double>(tall(l, j));
                for (Index l = 0; l <= i; ++l)
                    gram -= static_cast<double>(solution.R(l, i)) * static_cast<double>(solution.R(l, j));
                EXPECT_LE(std::abs(gram), 4 * static_cast<double>(k) * unit_roundoff<T> * squares);
            }
        }
    }
}

TYPED_TEST(LeastSquaresTest, TheToleranceIsTheCallers) {
    using T = TypeParam;
    const Matrix<T> A = with_condition<T>(50, 6, 1e4), B = random_normal<T>(50, 1, 5);
    const auto rank = [&](const Matrix<T>& M, double rcond) {
        const auto solution = least_squares(this->ctx, M.view(), B.view(), {.rcond = rcond});
        EXPECT_EQ(solution.dependent.size(), static_cast<std::size_t>(6 - solution.rank));
        const LeastSquaresOptions refusing{.rcond = rcond, .refuse_deficient = true};
        if (solution.rank == 6) {
            EXPECT_NO_THROW(least_squares(this->ctx, M.view(), B.view(), refusing));
        } else {
            EXPECT_THROW(least_squares(this->ctx, M.view(), B.view(), refusing), RankDeficient);
        }
        return solution.rank;
    };
    EXPECT_EQ(rank(A, -1), 6);
    EXPECT_EQ(rank(A, 1e-7), 6);
    EXPECT_EQ(rank(A, 9e-5), 6);
    EXPECT_LT(rank(A, 1.1e-4), 6);
    EXPECT_EQ(rank(A, 1), 0);
    // numerically dependent columns whose R has no zero on its diagonal
    const Matrix<T> D = generate<T>(Gallery::RankDeficientNumerical, 50, 6);
    EXPECT_EQ(rank(D, -1), 3);
    EXPECT_EQ(rank(D, 0), 6);
}

/// Columns (1, 0) and (1, s): of unit norm, 1/κ₁ = s/(2 + 2s) and, up to O(s²), σ₂/σ₁ = s/2.
template <class T>
Matrix<T> two_columns(double s) {
    Matrix<T> A = filled<T>(2, 2, 1);
    A(1, 0) = 0;
    A(1, 1) = static_cast<T>(s);
    return A;
}

TYPED_TEST(LeastSquaresTest, EveryRouteTakesTheToleranceAndDefaultsToTenU) {
    using T = TypeParam;
    const double u = unit_roundoff<T>;
    const Matrix<T> b = filled<T>(2, 1, 1);
    const auto routes = [&](const Matrix<T>& A, auto check) {
        const auto of = [](double rcond) { return LeastSquaresOptions{.rcond = rcond, .refuse_deficient = true}; };
        check([&](double rcond = -1) { return least_squares(this->ctx, A.view(), b.view(), of(rcond)); });
        check(
            [&](double rcond = -1) { return least_squares(this->ctx, qr(this->ctx, A.view()), b.view(), of(rcond)); });
        // a third unknown that no equation needs
        Matrix<T> wide = filled<T>(2, 3, 0);
        for (Index i = 0; i < 2; ++i) {
            for (Index j = 0; j < 2; ++j) wide(i, j) = A(j, i);
        }
        check([&](double rcond = -1) { return least_squares(this->ctx, wide.view(), b.view(), of(rcond)); });
        StreamingR<T> stream(this->ctx, 2, 1);
        stream.append(this->ctx, A.view(), b.view());
        check([&](double rcond = -1) { return stream.solve(this->ctx, of(rcond)); });
    };
    routes(two_columns<T>(30 * u), [&](auto solve) {
        EXPECT_NO_THROW(solve());
        EXPECT_NO_THROW(solve(14 * u));
        EXPECT_THROW(solve(16 * u), RankDeficient);
    });
    routes(two_columns<T>(16 * u), [&](auto solve) {
        EXPECT_THROW(solve(), RankDeficient);
        EXPECT_THROW(solve(-1), RankDeficient);
        EXPECT_NO_THROW(solve(7 * u));
        for (const double rcond :
             {-5.0, -0.5, 1.5, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
            EXPECT_THROW(solve(rcond), InvalidArgument) << rcond;
        }
    });
}

TYPED_TEST(LeastSquaresTest, PowersOfTwoScaleTheSolution) {
    using T = TypeParam;
    using Limits = std::numeric_limits<T>;
    const int exponents[] = {Limits::min_exponent - Limits::digits, Limits::min_exponent / 2, 0,
                             Limits::max_exponent / 2, Limits::max_exponent - 4};
    for (const auto& [m, n] : {std::pair<Index, Index>{300, 3}, {5, 5}, {3, 50}}) {
        for (const Method method : {Method::Auto, Method::BlockedHouseholder}) {
            const Options options{.method = method};
            const auto expected =
                least_squares(this->ctx, integers<T>(m, n, 0).view(), integers<T>(m, 2, 0).view(), {}, options);
            for (const int e : exponents) {
                for (const int of_b : exponents) {
                    if (std::abs(of_b - e) > Limits::max_exponent - 10) continue;
                    SCOPED_TRACE(fmt::format("{}x{}, A times 2^{}, b times 2^{}", m, n, e, of_b));
                    const auto f = least_squares(this->ctx, integers<T>(m, n, e).view(), integers<T>(m, 2, of_b).view(),
                                                 {}, options);
                    EXPECT_NEAR(f.condition, expected.condition, 1e-3 * expected.condition);
                    for (Index j = 0; j < 2; ++j) {
                        for (Index i = 0; i < n; ++i) {
                            const T x = std::ldexp(expected.X(i, j), of_b - e);
                            EXPECT_NEAR(f.X(i, j), x, 1e3 * unit_roundoff<T> * std::abs(x) + 2 * Limits::denorm_min());
                        }
                        const T norm = std::ldexp(expected.residual_norms[j], of_b);
                        if (std::isinf(norm)) {
                            EXPECT_EQ(f.residual_norms[j], norm);
                        } else {
                            EXPECT_NEAR(f.residual_norms[j], norm,
                                        1e3 * unit_roundoff<T> * norm + Limits::denorm_min());
                        }
                    }
                }
            }
        }
    }
}

TYPED_TEST(LeastSquaresTest, AFactorizationWhoseROverflowsIsRefused) {
    using T = TypeParam;
    const Matrix<T> A = integers<T>(300, 3, std::numeric_limits<T>::max_exponent - 4), b = filled<T>(300, 1, 1);
    const auto f = qr(this->ctx, A.view());
    EXPECT_THROW(least_squares(this->ctx, f, b.view()), NumericalBreakdown);
    StreamingR<T> stream(this->ctx, 3, 1);
    stream.append(this->ctx, A.view(), b.view());
    EXPECT_THROW(stream.solve(this->ctx), NumericalBreakdown);
    // R is what T holds, and its columns' norms are not
    Matrix<T> large = filled<T>(2, 2, std::numeric_limits<T>::max());
    large(1, 0) = 0;
    EXPECT_NO_THROW(least_squares(this->ctx,
                                  from_lapack<T, Host>(this->ctx, {copy<T>(large.view()), filled<T>(2, 1, 0)}),
                                  filled<T>(2, 1, 1).view()));
}

TYPED_TEST(LeastSquaresTest, ALargeMatrixIsNotRankDeficientForItsSize) {
    using T = TypeParam;
    const Matrix<T> tall = random_normal<T>(quick() ? 20000 : 400000, 4), b = random_normal<T>(tall.rows(), 1, 5);
    EXPECT_NO_THROW(least_squares(this->ctx, tall.view(), b.view()));
    const Index n = quick() ? 100 : 500;
    const Matrix<T> square = with_condition<T>(n, n, 1e3), c = random_normal<T>(n, 1, 5);
    EXPECT_NO_THROW(least_squares(this->ctx, square.view(), c.view()));
}

TYPED_TEST(LeastSquaresTest, EmptyShapes) {
    using T = TypeParam;
    {
        const Matrix<T> A(0, 0), B(0, 2);
        const auto solution = least_squares(this->ctx, A.view(), B.view());
        EXPECT_EQ(solution.X.rows(), 0);
        EXPECT_EQ(solution.residual_norms, std::vector<T>(2, 0));
    }
    {
        // no unknowns: the residual is b
        const Matrix<T> A(3, 0), B = filled<T>(3, 1, 2);
        const auto solution = least_squares(this->ctx, A.view(), B.view());
        EXPECT_EQ(solution.X.rows(), 0);
        EXPECT_NEAR(solution.residual_norms.at(0), std::sqrt(12.0), 20 * unit_roundoff<T>);
    }
    {
        // no equations: the shortest solution is zero
        const Matrix<T> A(0, 3), B(0, 2);
        const auto solution = least_squares(this->ctx, A.view(), B.view());
        EXPECT_TRUE(same_bits<T>(solution.X.view(), filled<T>(3, 2, 0).view()));
    }
    for (const auto& [m, n] : {std::pair<Index, Index>{10, 4}, {4, 10}}) {
        const Matrix<T> A = random_normal<T>(m, n), B(m, 0);
        const auto solution = least_squares(this->ctx, A.view(), B.view());
        EXPECT_EQ(solution.X.rows(), n);
        EXPECT_EQ(solution.X.cols(), 0);
        EXPECT_TRUE(solution.residual_norms.empty());
    }
}

TYPED_TEST(LeastSquaresTest, NonFiniteEntriesAreNamed) {
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
    const auto expect_entry = [&](const Matrix<T>& A, const Matrix<T>& B, Index row, Index col) {
        try {
            least_squares(this->ctx, A.view(), B.view());
            ADD_FAILURE() << "no NonFiniteEntry";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, row);
            EXPECT_EQ(e.col, col);
        }
    };
    for (const auto& [m, n] : {std::pair<Index, Index>{20, 6}, {6, 20}}) {
        Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(m, 3, 5);
        A(2, 5) = inf;
        A(5, 4) = nan;  // the first in column-major order
        expect_entry(A, B, 5, 4);
        A = random_normal<T>(m, n);
        B(4, 1) = nan;
        B(1, 2) = inf;
        expect_entry(A, B, 4, 1);
    }
    Matrix<T> B = random_normal<T>(20, 1);
    const auto f = qr(this->ctx, random_normal<T>(20, 6).view());
    B(19, 0) = -inf;
    EXPECT_THROW(least_squares(this->ctx, f, B.view()), NonFiniteEntry);
}

TYPED_TEST(LeastSquaresTest, ArgumentsThatDoNotFit) {
    using T = TypeParam;
    const Matrix<T> A = random_normal<T>(20, 6), B = random_normal<T>(19, 1), B_fits = random_normal<T>(20, 1);
    EXPECT_THROW(least_squares(this->ctx, A.view(), B.view()), InvalidArgument);
    const auto f = qr(this->ctx, A.view());
    EXPECT_THROW(least_squares(this->ctx, f, B.view()), InvalidArgument);
    const auto wide = qr(this->ctx, transposed<T>(A.view()).view());
    EXPECT_THROW(least_squares(this->ctx, wide, random_normal<T>(6, 1).view()), InvalidArgument);
    Options r_only;
    r_only.q = QForm::None;
    EXPECT_THROW(least_squares(this->ctx, qr(this->ctx, A.view(), r_only), B_fits.view()), InvalidArgument);
    // without a factorization of the caller's, the form that is needed is taken
    EXPECT_NO_THROW(least_squares(this->ctx, A.view(), B_fits.view(), {}, r_only));
}

TYPED_TEST(LeastSquaresTest, TheSameBitsForAnyNumberOfThreads) {
    using T = TypeParam;
    for (const auto& [m, n] : {std::pair<Index, Index>{quick() ? 2000 : 20000, 24}, {24, 900}}) {
        const Matrix<T> A = random_normal<T>(m, n), B = random_normal<T>(m, 70, 5);
        Context<Host> one(1);
        const auto expected = least_squares(one, A.view(), B.view());
        for (const int threads : {2, 3, 4}) {
            Context<Host> several(threads);
            const OmpThreads outside(threads);
            const auto solution = least_squares(several, A.view(), B.view());
            EXPECT_TRUE(same_bits<T>(solution.X.view(), expected.X.view())) << threads << " threads";
            EXPECT_EQ(solution.residual_norms, expected.residual_norms) << threads << " threads";
            EXPECT_EQ(solution.condition, expected.condition) << threads << " threads";
        }
    }
}

/// κ₁ of an upper triangle by its inverse, in higher precision.
template <class T>
double condition_by_inverse(MatrixView<const T> R) {
    using W = Wide<T>;
    const Index n = R.cols;
    W norm = 0, norm_of_inverse = 0;
    for (Index j = 0; j < n; ++j) {
        // R x = e_j
        std::vector<W> x(n);
        W column = 0, column_of_inverse = 0;
        for (Index i = j; i >= 0; --i) {
            W sum = i == j ? 1 : 0;
            for (Index l = i + 1; l <= j; ++l) sum -= W(R(i, l)) * x[l];
            x[i] = sum / W(R(i, i));
            column += std::abs(W(R(i, j)));
            column_of_inverse += std::abs(x[i]);
        }
        norm = std::max(norm, column);
        norm_of_inverse = std::max(norm_of_inverse, column_of_inverse);
    }
    return static_cast<double>(norm * norm_of_inverse);
}

TYPED_TEST(ConditionEstimateTest, IsALowerBoundWithinAFactorOfThree) {
    using T = TypeParam;
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::UpperTriangular, Gallery::Kahan,
                                       Gallery::NearCollinear4, Gallery::ClusteredScales}) {
        for (const Index n : {1, 2, 5, 30}) {
            SCOPED_TRACE(fmt::format("{} {}", to_string(matrix_class), n));
            const Matrix<T> R = qr(this->ctx, generate<T>(matrix_class, n, n).view()).r();
            const double kappa = condition_by_inverse<T>(R.view());
            const double estimate = condition_estimate<T>(this->ctx, R.view());
            EXPECT_GE(estimate, kappa / 3);
            // the estimator's solves have a componentwise backward error of n·u in double (Higham 2002, Theorem 8.5)
            EXPECT_LE(estimate, kappa * (1 + 10 * n * unit_roundoff<double> * kappa));
        }
    }
}

TYPED_TEST(ConditionEstimateTest, ExtremesOfScaleAndOfRank) {
    using T = TypeParam;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    Matrix<T> R = filled<T>(3, 3, nan);  // the lower triangle is nobody's business
    for (Index j = 0; j < 3; ++j) {
        for (Index i = 0; i <= j; ++i) R(i, j) = i == j ? T(1) : T(0);
    }
    EXPECT_EQ(condition_estimate<T>(this->ctx, R.view()), 1);
    R(2, 2) = std::ldexp(T(1), -40);
    EXPECT_EQ(condition_estimate<T>(this->ctx, R.view()), std::ldexp(1.0, 40));
    // [1 0 1; 0 1 1; 0 0 1] at any scale
    const auto fill = [&](T scale) {
        for (Index j = 0; j < 3; ++j) {
            for (Index i = 0; i <= j; ++i) R(i, j) = i == j || j == 2 ? scale : T(0);
        }
    };
    fill(1);
    const double expected = condition_estimate<T>(this->ctx, R.view());
    EXPECT_GE(expected, 3);
    EXPECT_LE(expected, 9);
    fill(std::ldexp(T(1), std::numeric_limits<T>::max_exponent - 1));
    EXPECT_EQ(condition_estimate<T>(this->ctx, R.view()), expected);
    fill(std::numeric_limits<T>::denorm_min());
    EXPECT_EQ(condition_estimate<T>(this->ctx, R.view()), expected);
    R(1, 1) = 0;
    EXPECT_EQ(condition_estimate<T>(this->ctx, R.view()), std::numeric_limits<double>::infinity());
    R(0, 1) = nan;
    EXPECT_TRUE(std::isnan(condition_estimate<T>(this->ctx, R.view())));
    EXPECT_EQ(condition_estimate<T>(this->ctx, Matrix<T>(0, 0).view()), 1);
    EXPECT_EQ(condition_estimate<T>(this->ctx, filled<T>(4, 4, 0).view()), std::numeric_limits<double>::infinity());
    EXPECT_THROW(condition_estimate<T>(this->ctx, Matrix<T>(3, 4).view()), InvalidArgument);
}

}  // namespace
}  // namespace quoin::test
