// Least squares in mixed precision: f64's law where the refinement converges, and f64's bits where it does not.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "least_squares_law.hpp"
#include "quoin/batch.hpp"
#include "quoin/streaming.hpp"

namespace quoin::test {
namespace {

using Real80 = Wide<double>;

constexpr double u = unit_roundoff<double>;
const LeastSquaresOptions mixed{.mixed_precision = true};

class MixedPrecisionTest : public testing::Test {
protected:
    LeastSquares<double> solve(const Matrix<double>& A, const Matrix<double>& B, LeastSquaresOptions solver = mixed,
                               Options options = {}) {
        return least_squares(ctx, A.view(), B.view(), solver, options);
    }
    /// Expects a refinement that fell back, with the results of f64.
    void expect_f64(const Matrix<double>& A, const Matrix<double>& B, LeastSquaresOptions solver = mixed) {
        const auto found = solve(A, B, solver);
        solver.mixed_precision = false;
        const auto expected = solve(A, B, solver);
        EXPECT_FALSE(found.refinement.fell_back.empty());
        EXPECT_TRUE(same_bits<double>(found.X.view(), expected.X.view()));
        EXPECT_TRUE(same_bits<double>(found.R.view(), expected.R.view()));
        EXPECT_EQ(found.residual_norms, expected.residual_norms);
        EXPECT_EQ(found.rank, expected.rank);
        EXPECT_EQ(found.dependent, expected.dependent);
        EXPECT_EQ(found.exponent, expected.exponent);
    }

    Context<Host> ctx{2};
};

/// The x of min ‖Ax − b‖ and the residual b − Ax, by modified Gram-Schmidt of [A b] in long double, whose x is as
/// accurate as by Householder QR (Björck 1967). A has n columns.
std::vector<Real80> reference_solution(const Matrix<double>& A, const Matrix<double>& b) {
    const Index m = A.rows(), n = A.cols();
    std::vector<std::vector<Real80>> Q(n + 1, std::vector<Real80>(m)), R(n + 1, std::vector<Real80>(n + 1));
    for (Index j = 0; j <= n; ++j)
        for (Index i = 0; i < m; ++i) Q[j][i] = j < n ? A(i, j) : b(i, 0);
    for (Index j = 0; j < n; ++j) {
        for (const Real80 x : Q[j]) R[j][j] += x * x;
        R[j][j] = std::sqrt(R[j][j]);
        for (Real80& x : Q[j]) x /= R[j][j];
        for (Index l = j + 1; l <= n; ++l) {
            for (Index i = 0; i < m; ++i) R[j][l] += Q[j][i] * Q[l][i];
            for (Index i = 0; i < m; ++i) Q[l][i] -= R[j][l] * Q[j][i];
        }
    }
    std::vector<Real80> x(n);
    for (Index j = n; j-- > 0;) {
        x[j] = R[j][n];
        for (Index l = j + 1; l < n; ++l) x[j] -= R[j][l] * x[l];
        x[j] /= R[j][j];
    }
    return x;
}

Real80 norm_of(const std::vector<Real80>& x) {
    Real80 squares = 0;
    for (const Real80 entry : x) squares += entry * entry;
    return std::sqrt(squares);
}

/// b − A x.
std::vector<Real80> residual_of(const Matrix<double>& A, const Matrix<double>& b, const std::vector<Real80>& x) {
    std::vector<Real80> r(A.rows());
    for (Index i = 0; i < A.rows(); ++i) {
        r[i] = b(i, 0);
        for (Index j = 0; j < A.cols(); ++j) r[i] -= A(i, j) * x[j];
    }
    return r;
}

/// An estimate of the least ‖ΔA‖_F for which x minimises ‖(A + ΔA)x − b‖, within a factor of 1.7: the norm of
/// (‖x‖²AᵀA + ‖r‖²I)^(-1/2) Aᵀr, r = b − Ax (Karlson and Waldén 1997; Gratton, Jiránek and Titley-Peloquin 2012).
Real80 backward_error(const Matrix<double>& A, const Matrix<double>& b, const std::vector<Real80>& x) {
    const Index m = A.rows(), n = A.cols();
    const std::vector<Real80> r = residual_of(A, b, x);
    const Real80 xi = norm_of(x), rho = norm_of(r);
    // ‖y‖ for LLᵀ = ξ²AᵀA + ρ²I and Ly = Aᵀr
    std::vector<std::vector<Real80>> L(n, std::vector<Real80>(n));
    std::vector<Real80> y(n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) y[j] += A(i, j) * r[i];
        for (Index l = 0; l <= j; ++l) {
            for (Index i = 0; i < m; ++i) L[j][l] += xi * A(i, j) * (xi * A(i, l));
            if (l == j) L[j][l] += rho * rho;
            for (Index k = 0; k < l; ++k) L[j][l] -= L[j][k] * L[l][k];
            L[j][l] = l == j ? std::sqrt(L[j][l]) : L[j][l] / L[l][l];
        }
        for (Index k = 0; k < j; ++k) y[j] -= L[j][k] * y[k];
        y[j] /= L[j][j];
    }
    return norm_of(y);
}

std::vector<Real80> widened(const Matrix<double>& x) { return {x.data(), x.data() + x.rows()}; }

TEST_F(MixedPrecisionTest, ObeysTheLawOfF64) {
    const struct {
        Index m, n, p;
    } shapes[] = {{1, 1, 1}, {2, 1, 3}, {5, 5, 2}, {50, 10, 1}, {67, 33, 5}, {quick() ? 300 : 3001, 20, 2}};
    for (const Gallery matrix_class : {Gallery::RandomNormal, Gallery::ClusteredScales, Gallery::Orthogonal,
                                       Gallery::OrthogonalGrowth, Gallery::Identity, Gallery::PermutedIdentity}) {
        for (const auto& [m, n, p] : shapes) {
            SCOPED_TRACE(fmt::format("{} {}x{}", to_string(matrix_class), m, n));
            const Matrix<double> A = generate<double>(matrix_class, m, n), B = random_normal<double>(m, p, 7);
            const auto solution = solve(A, B);
            EXPECT_EQ(solution.refinement.fell_back, "");
            EXPECT_EQ(solution.rank, n);
            expect_least_squares_law<double>(A.view(), B.view(), solution);
        }
    }
}

TEST_F(MixedPrecisionTest, TheGalleryIsSolvedOrFallsBack) {
    for (const Gallery matrix_class : gallery()) {
        SCOPED_TRACE(to_string(matrix_class));
        const Matrix<double> A = generate<double>(matrix_class, 60, 12), B = random_normal<double>(60, 2, 7);
        const auto solution = solve(A, B);
        if (!solution.refinement.fell_back.empty()) {
            expect_f64(A, B);
        } else {
            expect_least_squares_law<double>(A.view(), B.view(), solution);
            EXPECT_EQ(solution.rank, 12);
        }
    }
}

TEST_F(MixedPrecisionTest, ConvergesForModerateConditionsOnly) {
    const Index m = 120, n = 20;
    const Matrix<double> B = random_normal<double>(m, 3, 7);
    for (const double kappa : {1.0, 1e2, 1e4, 1e6}) {
        SCOPED_TRACE(kappa);
        const Matrix<double> A = with_condition<double>(m, n, kappa);
        const auto solution = solve(A, B);
        EXPECT_EQ(solution.refinement.fell_back, "");
        // each step divides the error by about 1/(κu) for the u of f32
        EXPECT_LE(solution.refinement.steps, kappa <= 1e4 ? 6 : 14);
        expect_least_squares_law<double>(A.view(), B.view(), solution);
        EXPECT_GE(solution.condition, kappa / n / 3);
        EXPECT_LE(solution.condition, 1.1 * kappa * n);
    }
    for (const double kappa : {1e9, 1e10, 1e14}) {
        SCOPED_TRACE(kappa);
        expect_f64(with_condition<double>(m, n, kappa), B);
    }
}

/// x̂ is the solution for a matrix near A, also where ‖r‖ is far below ‖b‖ and the law of the gradient says little.
TEST_F(MixedPrecisionTest, IsBackwardStableForResidualsOfAnySize) {
    const Index m = 90, n = 15;
    for (const double kappa : {1e1, 1e4, 1e6}) {
        const Matrix<double> A = with_condition<double>(m, n, kappa), X = random_normal<double>(n, 1, 3);
        const Matrix<double> noise = random_normal<double>(m, 1, 5);
        for (const double size : {0.0, 1e-14, 1e-11, 1e-8, 1e-5, 1.0, 1e3}) {
            SCOPED_TRACE(fmt::format("kappa {} residual {}", kappa, size));
            Matrix<double> b = product<double>(A.view(), X.view());
            for (Index i = 0; i < m; ++i) b(i, 0) += size * noise(i, 0);
            const auto solution = solve(A, b);
            ASSERT_EQ(solution.refinement.fell_back, "");
            const double unit = n * u * frobenius_norm<double>(A.view());
            EXPECT_LE(static_cast<double>(backward_error(A, b, widened(solution.X))), least_squares_law * unit);
            // ‖x̂ − x‖ <= O(nu)(κ‖x‖ + κ²‖r‖/‖A‖) (Wedin 1973; Higham 2002, Theorem 20.1), ‖A‖ = 1
            const std::vector<Real80> x = reference_solution(A, b);
            std::vector<Real80> error = widened(solution.X);
            for (Index j = 0; j < n; ++j) error[j] -= x[j];
            const Real80 r = norm_of(residual_of(A, b, x));
            EXPECT_LE(static_cast<double>(norm_of(error) / (kappa * norm_of(x) + kappa * kappa * r)),
                      least_squares_law * n * u);
        }
    }
}

TEST_F(MixedPrecisionTest, RightHandSidesOfEverySizeAndKind) {
    const Index m = 80, n = 12;
    const Matrix<double> A = with_condition<double>(m, n, 1e3), X = random_normal<double>(n, 6, 3);
    Matrix<double> B = product<double>(A.view(), X.view());
    const Matrix<double> noise = random_normal<double>(m, 6, 5);
    for (Index i = 0; i < m; ++i) {
        B(i, 1) = 0;
        B(i, 2) *= 1e-100;
        B(i, 3) = noise(i, 3) * 1e100;
        B(i, 4) += noise(i, 4);
        B(i, 5) = A(i, 7);
    }
    const auto solution = solve(A, B);
    EXPECT_EQ(solution.refinement.fell_back, "");
    expect_least_squares_law<double>(A.view(), B.view(), solution);
    for (Index j = 0; j < n; ++j) EXPECT_EQ(solution.X(j, 1), 0);
    EXPECT_EQ(solution.residual_norms[1], 0);
}

TEST_F(MixedPrecisionTest, ScalesOfColumnsDoNotMatter) {
    const Index m = 60, n = 9;
    const Matrix<double> B = random_normal<double>(m, 2, 7);
    for (const double exponent : {100.0, 300.0}) {
        Matrix<double> A = random_normal<double>(m, n);
        for (Index j = 0; j < n; ++j) {
            const double scale = std::pow(10.0, exponent * (1 - 2.0 * static_cast<double>(j) / (n - 1)));
            for (Index i = 0; i < m; ++i) A(i, j) *= scale;
        }
        const auto solution = solve(A, B);
        EXPECT_EQ(solution.refinement.fell_back.empty(), exponent == 100);
        expect_least_squares_law<double>(A.view(), B.view(), solution);
    }
    for (const double scale : {1e-200, 1e200}) {
        Matrix<double> A = random_normal<double>(m, n);
        for (Index i = 0; i < m * n; ++i) A.data()[i] *= scale;
        expect_f64(A, B);
        expect_f64(random_normal<double>(m, n), A);
    }
}

/// One column depends on two others. For b = 0 no step is needed, and any R would do.
TEST_F(MixedPrecisionTest, RankDeficiencyIsFoundForManyColumns) {
    for (const Index n : {40, 300}) {
        SCOPED_TRACE(n);
        Matrix<double> A = random_normal<double>(2 * n, n);
        for (Index i = 0; i < A.rows(); ++i) A(i, n / 2) = A(i, 0) + A(i, n - 1);
        const Matrix<double> B = product<double>(A.view(), random_normal<double>(n, 1, 3).view());
        expect_f64(A, B);
        expect_f64(A, filled<double>(2 * n, 1, 0));
        EXPECT_EQ(solve(A, B).rank, n - 1);
    }
}

TEST_F(MixedPrecisionTest, RankIsDecidedByF64) {
    const Matrix<double> B = random_normal<double>(60, 2, 5);
    for (const Gallery matrix_class : {Gallery::RankDeficientExact, Gallery::RankDeficientNumerical,
                                       Gallery::ZeroSomeColumns, Gallery::Zero, Gallery::DuplicateColumns}) {
        SCOPED_TRACE(to_string(matrix_class));
        const Matrix<double> A = generate<double>(matrix_class, 60, 12);
        expect_f64(A, B);
        EXPECT_THROW(solve(A, B, {.refuse_deficient = true, .mixed_precision = true}), RankDeficient);
    }
    const Matrix<double> A = with_condition<double>(60, 6, 1e3);
    expect_f64(A, B, {.rcond = 1e-2, .mixed_precision = true});
    for (const double rcond : {0.0, 1e-8}) {
        const auto solution = solve(A, B, {.rcond = rcond, .mixed_precision = true});
        EXPECT_EQ(solution.refinement.fell_back, "");
        EXPECT_EQ(solution.rank, 6);
        EXPECT_EQ(solution.tolerance, rcond);
    }
    EXPECT_EQ(solve(A, B).tolerance, 10 * u);
}

TEST_F(MixedPrecisionTest, EveryMethodFactorsInF32) {
    const Matrix<double> A = with_condition<double>(400, 12, 1e2), B = random_normal<double>(400, 2, 5);
    for (const Method method : all_methods) {
        SCOPED_TRACE(to_string(method));
        const auto solution = solve(A, B, mixed, with(method));
        EXPECT_EQ(solution.refinement.fell_back, "");
        EXPECT_TRUE(method == Method::Auto || solution.report.method == method);
        expect_least_squares_law<double>(A.view(), B.view(), solution);
    }
    // κ²u is above 1 in f32, and far below 1 in f64
    const Matrix<double> hard = with_condition<double>(400, 12, 1e5);
    const auto solution = solve(hard, B, mixed, with(Method::CholeskyQR2));
    EXPECT_EQ(solution.refinement.fell_back.find("QR in f32: "), 0U) << solution.refinement.fell_back;
    expect_least_squares_law<double>(hard.view(), B.view(), solution);
}

TEST_F(MixedPrecisionTest, StorageAndThreadsChangeNoBits) {
    const Index m = 300, n = 40;
    const Matrix<double> A = random_normal<double>(m, n), B = random_normal<double>(m, 3, 5);
    const auto expected = solve(A, B);
    const Padded<double> A_padded(A.view()), B_padded(B.view());
    const Matrix<double> At = transposed<double>(A.view());
    for (const int threads : {1, 4}) {
        Context<Host> other(threads);
        const auto padded = least_squares(other, A_padded.view(), B_padded.view(), mixed);
        const auto by_rows = least_squares(other, RowMajorView<const double>{At.data(), m, n, n}, B.view(), mixed);
        for (const LeastSquares<double>* const found : {&padded, &by_rows}) {
            EXPECT_TRUE(same_bits<double>(found->X.view(), expected.X.view()));
            EXPECT_EQ(found->residual_norms, expected.residual_norms);
            EXPECT_EQ(found->refinement.steps, expected.refinement.steps);
        }
    }
    EXPECT_TRUE(same_bits<double>(A_padded.view(), A.view()) && same_bits<double>(B_padded.view(), B.view()));
    EXPECT_TRUE(A_padded.padding_intact() && B_padded.padding_intact());
}

/// R has the rounding errors of f32.
TEST_F(MixedPrecisionTest, GivesRInF32) {
    const Matrix<double> A = with_condition<double>(90, 12, 10), B = random_normal<double>(90, 1, 5);
    const auto solution = solve(A, B);
    EXPECT_TRUE(is_upper_trapezoidal<double>(solution.R.view()));
    EXPECT_LE(gram_error<double>(A.view(), solution.R.view()), 2 * law * unit_roundoff<float> / u);
    EXPECT_GT(gram_error<double>(A.view(), solution.R.view()), 2 * law) << "R is f64's: document it";
    EXPECT_GE(solution.report.seconds, 0);
}

TEST_F(MixedPrecisionTest, EmptyAndSquareProblems) {
    for (const auto& [m, n, p] : {std::tuple<Index, Index, Index>{0, 0, 2}, {3, 0, 1}, {10, 4, 0}, {30, 30, 2}}) {
        SCOPED_TRACE(fmt::format("{}x{} {}", m, n, p));
        const Matrix<double> A = random_normal<double>(m, n), B = random_normal<double>(m, p, 5);
        const auto solution = solve(A, B);
        EXPECT_EQ(solution.refinement.fell_back, "");
        expect_least_squares_law<double>(A.view(), B.view(), solution);
        EXPECT_TRUE(m > n || solution.residual_norms == std::vector<double>(p, 0));
    }
}

TEST_F(MixedPrecisionTest, NonFiniteEntriesAreNamedOrPropagate) {
    const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    Matrix<double> A = random_normal<double>(20, 6), B = random_normal<double>(20, 3, 5);
    const auto expect_entry = [&](Index row, Index col) {
        try {
            solve(A, B);
            ADD_FAILURE() << "no NonFiniteEntry";
        } catch (const NonFiniteEntry& e) {
            EXPECT_EQ(e.row, row);
            EXPECT_EQ(e.col, col);
        }
        Options unchecked;
        unchecked.check_finite = false;
        EXPECT_FALSE(solve(A, B, mixed, unchecked).refinement.fell_back.empty());
    };
    A(5, 4) = nan;
    expect_entry(5, 4);
    A(5, 4) = inf;
    expect_entry(5, 4);
    A(5, 4) = 1;
    B(4, 1) = -inf;
    expect_entry(4, 1);
}

TEST_F(MixedPrecisionTest, ProblemsWithoutMixedPrecisionAreRefused) {
    const Matrix<double> A = random_normal<double>(20, 6), B = random_normal<double>(20, 1, 5);
    const Matrix<double> wide = transposed<double>(A.view()), b = random_normal<double>(6, 1, 5);
    EXPECT_THROW(solve(wide, b), InvalidArgument);
    EXPECT_THROW(solve(A, B, {.singular_values = true, .mixed_precision = true}), InvalidArgument);
    EXPECT_THROW(solve(A, B, mixed, {.verify = true}), InvalidArgument);
    EXPECT_THROW(solve(A, B, {.rcond = 2, .mixed_precision = true}), InvalidArgument);
    EXPECT_THROW(solve(A, random_normal<double>(19, 1, 5)), InvalidArgument);
    const Matrix<float> A32 = random_normal<float>(20, 6), B32 = random_normal<float>(20, 1, 5);
    EXPECT_THROW(least_squares(ctx, A32.view(), B32.view(), mixed), InvalidArgument);
    EXPECT_THROW(least_squares(ctx, qr(ctx, A.view()), B.view(), mixed), InvalidArgument);
    const BatchView<const double> As(A.data(), 20, 6, 20, 120, 1), Bs(B.data(), 20, 1, 20, 20, 1);
    EXPECT_THROW(least_squares(ctx, As, Bs, mixed), InvalidArgument);
    StreamingR<double> stream(ctx, 6, 1);
    stream.append(ctx, A.view(), B.view());
    EXPECT_THROW(stream.solve(ctx, mixed), InvalidArgument);
}

}  // namespace
}  // namespace quoin::test
