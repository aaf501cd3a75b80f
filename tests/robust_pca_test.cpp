// Principal component pursuit: what theory says it recovers, its two routes and iterations against each other, and its
// interface.

#include "quoin/apps/robust_pca.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "checks.hpp"
#include "gallery.hpp"
#include "heap_peak.hpp"
#include "mixture.hpp"
#include "quoin/apps/robust_pca_of_frames.hpp"
#include "quoin/error.hpp"
#include "quoin/svd.hpp"
#include "robust_pca/pursuit.hpp"

namespace quoin::test {
namespace {

template <class T>
double distance(const Matrix<T>& A, const Matrix<T>& B) {
    double squares = 0;
    for (Index j = 0; j < A.cols(); ++j) {
        for (Index i = 0; i < A.rows(); ++i) squares += std::pow(static_cast<double>(A(i, j)) - B(i, j), 2);
    }
    return std::sqrt(squares) / frobenius_norm<T>(B.view());
}

template <class T>
void assign(MatrixView<const T> A, MatrixView<T> B) {
    for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, B.at(0, j));
}

template <class T>
Matrix<T> rounded_to_integers(MatrixView<const T> A) {
    Matrix<T> B = copy<T>(A);
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) B(i, j) = std::round(B(i, j));
    }
    return B;
}

template <class T>
class RobustPcaTest : public testing::Test {
protected:
    static constexpr double tolerance = std::is_same_v<T, double> ? 1e-7 : 1e-5;
    Context<Host> ctx{2};
    RobustPcaOptions<T> options;
    RobustPcaTest() { options.tolerance = tolerance; }
};
TYPED_TEST_SUITE(RobustPcaTest, Scalars);

TYPED_TEST(RobustPcaTest, RecoversBothPartsByEitherRouteOfEitherShape) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{400, 60}, {60, 400}, {90, 90}}) {
        const Mixture<T> mix(m, n, 3, 0.05);
        for (ThresholdRoute route : {ThresholdRoute::Auto, ThresholdRoute::Qr, ThresholdRoute::Gram}) {
            SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
            this->options.route = route;
            const RobustPca<T> f = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
            EXPECT_EQ(f.end, PursuitEnd::Converged);
            EXPECT_LE(f.last.residual, this->tolerance);
            EXPECT_LT(f.last.iteration, 60);
            EXPECT_EQ(f.last.rank, 3);
            // the error of the parts is some condition number of the problem times the residual
            EXPECT_LE(distance<T>(f.L, mix.L), 100 * this->tolerance);
            EXPECT_LE(distance<T>(f.S, mix.S), 100 * this->tolerance);
        }
    }
}

TYPED_TEST(RobustPcaTest, TakesTheRouteThatItReports) {
    using T = TypeParam;
    const Mixture<T> mix(400, 60, 3, 0.05);
    for (const ThresholdRoute route : {ThresholdRoute::Auto, ThresholdRoute::Qr, ThresholdRoute::Gram}) {
        Trace trace;
        this->ctx.attach(&trace);
        this->options.route = route;
        const RobustPca<T> f = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
        this->ctx.attach(nullptr);
        EXPECT_NE(f.route, ThresholdRoute::Auto);
        if (route != ThresholdRoute::Auto) EXPECT_EQ(f.route, route);
        Index trees = 0;
        for (const Trace::Span& span : trace.spans()) {
            trees += span.name == "R by TSQR";
            EXPECT_NE(span.name, "Gram passes") << "CholeskyQR";
        }
        // the spectra of M and of each iterate
        EXPECT_EQ(trees, f.route == ThresholdRoute::Qr ? f.last.iteration + 1 : 0);
    }
}

TYPED_TEST(RobustPcaTest, TheObjectiveIsThatOfItsParts) {
    using T = TypeParam;
    const Mixture<T> mix(200, 40, 2, 0.05);
    const RobustPca<T> f = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
    double sum = 0;
    Index nonzeros = 0;
    for (Index j = 0; j < 40; ++j) {
        for (Index i = 0; i < 200; ++i) {
            sum += std::abs(static_cast<double>(f.S(i, j)));
            nonzeros += f.S(i, j) != 0;
        }
    }
    double nuclear = 0;
    for (T s : svd<T, Host>(this->ctx, f.L.view(), false).s) nuclear += static_cast<double>(s);
    EXPECT_DOUBLE_EQ(f.lambda, 1 / std::sqrt(200.0));
    EXPECT_EQ(f.last.nonzeros, nonzeros);
    const double expected = nuclear + f.lambda * sum;
    EXPECT_NEAR(f.last.objective, expected, 1e3 * unit_roundoff<T> * expected);
}

// the multipliers at the optimum are a subgradient of λ‖S‖₁: λ sign(s_ij) where s_ij is not 0, and within ±λ elsewhere
TYPED_TEST(RobustPcaTest, LambdaIsThatOfTheOptimum) {
    using T = TypeParam;
    const Index m = 200, n = 40;
    const Mixture<T> mix(m, n, 2, 0.05);
    for (const double given : {0.0, 0.1}) {
        const double lambda = given > 0 ? given : 1 / std::sqrt(200.0);
        this->options.lambda = given;
        const RobustPca<T> f = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
        EXPECT_DOUBLE_EQ(f.lambda, lambda);
        double largest = 0, on_support = 0;
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                const double y = static_cast<double>(f.Y(i, j));
                largest = std::max(largest, std::abs(y));
                if (f.S(i, j) != 0) on_support += y * (f.S(i, j) > 0 ? 1 : -1) / static_cast<double>(f.last.nonzeros);
            }
        }
        EXPECT_NEAR(on_support / lambda, 1, 2e-3);
        EXPECT_NEAR(largest / lambda, 1, 1e-2);
    }
}

// With Z = M − L − S the optimum has μZ in the subdifferentials of ‖L‖_* and of λ‖S‖₁: ‖μZ‖₂ <= 1 with UᵀμZ V = I, and
// |μz_ij| <= λ with λ sign(s_ij) where s_ij is not 0.
TYPED_TEST(RobustPcaTest, AStablePursuitEndsAtTheOptimumAndGivesNoiseNoRank) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{400, 40}, {40, 400}}) {
        Mixture<T> mix(m, n, 3, 0.05);
        mix.add_noise(0.02);
        EXPECT_GT((robust_pca<T, Host>(this->ctx, mix.M.view(), this->options).last.rank), 20);
        RobustPcaOptions<T> options;
        options.pursuit = Pursuit::Stable;
        options.noise = 0.02;
        options.tolerance = std::is_same_v<T, double> ? 1e-9 : 1e-6;
        const RobustPca<T> f = robust_pca<T, Host>(this->ctx, mix.M.view(), options);
        EXPECT_EQ(f.end, PursuitEnd::Converged);
        EXPECT_EQ(f.last.rank, 3);
        EXPECT_NEAR(f.last.mu * 0.02 * std::sqrt(2.0 * 400), 1, 1e-12);
        Matrix<T> Z(m, n);
        double largest = 0, on_support = 0, squares = 0, sum = 0;
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) {
                const double z = static_cast<double>(mix.M(i, j)) - static_cast<double>(f.L(i, j)) -
                                 static_cast<double>(f.S(i, j)),
                             s = static_cast<double>(f.S(i, j));
                Z(i, j) = static_cast<T>(f.last.mu * z);
                squares += z * z;
                sum += std::abs(s);
                largest = std::max(largest, std::abs(f.last.mu * z));
                if (s != 0) on_support += f.last.mu * z * (s > 0 ? 1 : -1) / static_cast<double>(f.last.nonzeros);
                EXPECT_EQ(f.Y(i, j), 0);
            }
        }
        const double near = std::is_same_v<T, double> ? 1e-5 : 1e-3;
        EXPECT_NEAR(largest / f.lambda, 1, 10 * near);
        EXPECT_NEAR(on_support / f.lambda, 1, near);
        const std::vector<T> of_Z = svd<T, Host>(this->ctx, Z.view(), false).s;
        for (int k = 0; k < 3; ++k) EXPECT_NEAR(static_cast<double>(of_Z[k]), 1, near);
        EXPECT_LT(static_cast<double>(of_Z[3]), 1);
        double nuclear = 0;
        for (T s : svd<T, Host>(this->ctx, f.L.view(), false).s) nuclear += static_cast<double>(s);
        const double objective = nuclear + f.lambda * sum + f.last.mu / 2 * squares;
        EXPECT_NEAR(f.last.objective / objective, 1, near);
    }
}

TYPED_TEST(RobustPcaTest, FindsTheNoiseOfColumnsThatFollowEachOther) {
    using T = TypeParam;
    Matrix<T> M = random_normal<T>(3000, 20, 4);
    for (Index j = 0; j < 20; ++j) {
        for (Index i = 0; i < 3000; ++i) {
            M(i, j) = T(0.03) * M(i, j) + static_cast<T>(std::sin(0.01 * static_cast<double>(i)));
            if ((i + 37 * j) % 100 == 0) M(i, j) += T(1);  // what moves
        }
    }
    EXPECT_NEAR(noise_between_columns<T>(M.view()) / 0.03, 1, 0.05);
    EXPECT_EQ(noise_between_columns<T>(M.view().col_block({0, 1})), 0);
    EXPECT_EQ(noise_between_columns<T>(filled<T>(10, 5, T(2)).view()), 0);
}

TYPED_TEST(RobustPcaTest, MuGrowsByRhoToTenMillionTimesItsFirst) {
    using T = TypeParam;
    const Mixture<T> mix(60, 20, 2, 0.05);
    std::vector<double> mu;
    this->options.tolerance = 1e-30;
    this->options.rho = 10;
    this->options.mu = 0.5;
    this->options.max_iterations = 15;
    this->options.on_step = [&](const RobustPcaStep& step) {
        mu.push_back(step.mu);
        return true;
    };
    robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
    ASSERT_EQ(mu.size(), 15u);
    for (std::size_t i = 0; i < mu.size(); ++i) {
        EXPECT_NEAR(mu[i] / (0.5 * std::min(1e7, std::pow(10.0, double(i)))), 1, 1e-12) << i;
    }
}

TYPED_TEST(RobustPcaTest, PowersOfTwoScaleThePartsToTheBit) {
    using T = TypeParam;
    using Limits = std::numeric_limits<T>;
    const auto times = [](MatrixView<const T> A, int e) {
        Matrix<T> B = copy<T>(A);
        for (Index j = 0; j < A.cols; ++j) {
            for (Index i = 0; i < A.rows; ++i) B(i, j) = std::ldexp(B(i, j), e);
        }
        return B;
    };
    for (auto [m, n] : {std::pair<Index, Index>{60, 20}, {20, 60}}) {
        const Mixture<T> mix(m, n, 2, 0.05);
        // few bits of each entry, so that they are all there below the normal numbers too
        const Matrix<T> M = times(rounded_to_integers<T>(times(mix.M.view(), 4).view()).view(), -4);
        Matrix<std::uint8_t> observed(m, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) observed(i, j) = (7 * i + 11 * j) % 5 != 0;
        }
        for (const Pursuit pursuit : {Pursuit::InexactAlm, Pursuit::AlternatingDirections, Pursuit::Stable}) {
            const bool stable = pursuit == Pursuit::Stable;
            for (const ThresholdRoute route : {ThresholdRoute::Gram, ThresholdRoute::Qr}) {
                for (const bool warm : {false, true}) {
                    const auto pursue = [&](int e, std::vector<RobustPcaStep>& steps) {
                        const Matrix<T> scaled = times(M.view(), e), L = times(M.view(), e - 1);
                        const Matrix<T> Y = filled<T>(M.rows(), M.cols(), T(0.01));
                        RobustPcaOptions<T> options = this->options;
                        options.pursuit = pursuit;
                        options.route = route;
                        options.max_iterations = 12;
                        if (stable) options.noise = std::ldexp(0.01, e);
                        if (warm) {
                            options.observed = observed.view();
                            options.L = L.view();
                            if (!stable) options.Y = Y.view();
                            options.mu = std::ldexp(0.05, -e);
                        }
                        options.on_step = [&](const RobustPcaStep& step) {
                            steps.push_back(step);
                            return true;
                        };
                        return robust_pca<T, Host>(this->ctx, scaled.view(), options);
                    };
                    std::vector<RobustPcaStep> expected_steps;
                    const RobustPca<T> expected = pursue(0, expected_steps);
                    EXPECT_LT(expected.last.residual, stable && warm ? 1 : 0.1)
                        << "a stable pursuit ends at the given μ";
                    // S and L have bits that denormals do not hold
                    for (const int e : {Limits::min_exponent + Limits::digits, Limits::min_exponent / 2, -20, 10, 60,
                                        Limits::max_exponent / 2, Limits::max_exponent - 8}) {
                        SCOPED_TRACE("times 2^" + std::to_string(e));
                        std::vector<RobustPcaStep> steps;
                        const RobustPca<T> f = pursue(e, steps);
                        EXPECT_TRUE(same_bits<T>(f.Y.view(), expected.Y.view()));
                        if (e > Limits::min_exponent + Limits::digits) {
                            EXPECT_TRUE(same_bits<T>(f.L.view(), times(expected.L.view(), e).view()));
                            EXPECT_TRUE(same_bits<T>(f.S.view(), times(expected.S.view(), e).view()));
                        }
                        ASSERT_EQ(steps.size(), expected_steps.size());
                        EXPECT_EQ(f.end, expected.end);
                        for (std::size_t i = 0; i < steps.size(); ++i) {
                            EXPECT_EQ(steps[i].error, expected_steps[i].error);
                            EXPECT_EQ(steps[i].objective, std::ldexp(expected_steps[i].objective, e));
                            EXPECT_EQ(steps[i].mu, std::ldexp(expected_steps[i].mu, -e));
                        }
                        EXPECT_EQ(f.last.objective, steps.back().objective);
                        EXPECT_EQ(f.last.mu, steps.back().mu);
                    }
                }
            }
        }
    }
}

TYPED_TEST(RobustPcaTest, AlternatingDirectionsReachTheSameOptimum) {
    using T = TypeParam;
    const Mixture<T> mix(150, 30, 2, 0.05);
    const RobustPca<T> alm = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
    this->options.pursuit = Pursuit::AlternatingDirections;
    this->options.tolerance = 1e-4;
    this->options.max_iterations = 5000;
    const RobustPca<T> f = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
    EXPECT_EQ(f.end, PursuitEnd::Converged);
    EXPECT_NEAR(f.last.objective, alm.last.objective, 1e-3 * alm.last.objective);
}

// Pictures have large entries throughout. Constant μ makes a small residual at once, long before the objective is
// low.
TYPED_TEST(RobustPcaTest, AlternatingDirectionsGoOnToTheOptimumOfPictures) {
    using T = TypeParam;
    const Index m = 500, n = 30;
    Matrix<T> M(m, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            const bool covered = (i + 16 * j) % 500 < 40;
            M(i, j) = static_cast<T>(covered ? 0.9 : (1 + 0.005 * double(j)) * (0.5 + 0.2 * std::sin(0.1 * double(i))));
        }
    }
    const RobustPca<T> alm = robust_pca<T, Host>(this->ctx, M.view(), this->options);
    this->options.pursuit = Pursuit::AlternatingDirections;
    this->options.tolerance = 1e-3;
    this->options.max_iterations = 5000;
    const RobustPca<T> f = robust_pca<T, Host>(this->ctx, M.view(), this->options);
    EXPECT_EQ(f.end, PursuitEnd::Converged);
    EXPECT_LE(f.last.residual, 1e-3);
    EXPECT_LE(f.last.dual_residual, 1e-3);
    EXPECT_NEAR(f.last.objective, alm.last.objective, 1e-3 * alm.last.objective);
}

TYPED_TEST(RobustPcaTest, EntriesThatAreNotObservedAreImputed) {
    using T = TypeParam;
    const Index m = 300, n = 50;
    const Mixture<T> mix(m, n, 2, 0);
    Matrix<T> M = copy<T>(mix.M.view());
    Matrix<std::uint8_t> observed(m, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            observed(i, j) = (7 * i + 11 * j) % 5 != 0;
            if (!observed(i, j)) M(i, j) = std::numeric_limits<T>::quiet_NaN();
        }
    }
    this->options.observed = observed.view();
    const RobustPca<T> f = robust_pca<T, Host>(this->ctx, M.view(), this->options);
    EXPECT_EQ(f.end, PursuitEnd::Converged);
    EXPECT_LE(distance<T>(f.L, mix.L), 1e-2);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            if (!observed(i, j)) {
                EXPECT_EQ(f.S(i, j), T(0));
            }
        }
    }
}

TYPED_TEST(RobustPcaTest, AStepCorrectsLAndYAndAddsUp) {
    using T = TypeParam;
    using W = Wide<T>;
    const Index m = 300, n = 8;
    const Matrix<T> X = random_normal<T>(m, n, 1), M = random_normal<T>(m, n, 2), S = random_normal<T>(m, n, 3);
    Matrix<T> P = random_normal<T>(n, n, 4), L = copy<T>(X.view());
    const Matrix<T> Y = random_normal<T>(m, n, 5);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < j; ++i) P(i, j) = P(j, i);
    }
    Matrix<T> next_Y = copy<T>(Y.view());
    PursuitSums sums;
    update_low_rank_and_multipliers<T>(this->ctx, P.view(), M.view(), S.view(), {}, 0.7, L.view(), next_Y.view(),
                                       {&sums, 1, 1});
    const double u = unit_roundoff<T>;
    W residual = 0, multipliers = 0;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            W l = 0, size = 0;
            for (Index k = 0; k < n; ++k) l += W(X(i, k)) * W(P(k, j)), size += std::abs(W(X(i, k)) * W(P(k, j)));
            EXPECT_LE(std::abs(static_cast<double>(W(L(i, j)) - l)), n * u * static_cast<double>(size));
            const W z = W(M(i, j)) - W(L(i, j)) - W(S(i, j)), y = W(Y(i, j)) + W(T(0.7)) * z;
            const W terms = std::abs(W(M(i, j))) + std::abs(W(L(i, j))) + std::abs(W(S(i, j))) + std::abs(W(Y(i, j)));
            EXPECT_LE(std::abs(static_cast<double>(W(next_Y(i, j)) - y)), 4 * u * static_cast<double>(terms));
            residual += z * z, multipliers += W(next_Y(i, j)) * W(next_Y(i, j));
        }
    }
    EXPECT_NEAR(sums.residual, static_cast<double>(residual), m * u * static_cast<double>(residual));
    EXPECT_NEAR(sums.multipliers, static_cast<double>(multipliers), m * u * static_cast<double>(multipliers));
}

TYPED_TEST(RobustPcaTest, StopsRanksAndWarmStarts) {
    using T = TypeParam;
    const Mixture<T> mix(200, 40, 4, 0.05);
    const RobustPca<T> whole = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);

    std::vector<Index> seen;
    RobustPcaOptions<T> stopping = this->options;
    stopping.on_step = [&](const RobustPcaStep& step) {
        seen.push_back(step.iteration);
        return step.iteration < 5;
    };
    const RobustPca<T> stopped = robust_pca<T, Host>(this->ctx, mix.M.view(), stopping);
    EXPECT_EQ(stopped.end, PursuitEnd::Stopped);
    EXPECT_EQ(seen, (std::vector<Index>{1, 2, 3, 4, 5}));

    RobustPcaOptions<T> limited = this->options;
    limited.max_iterations = 4;
    EXPECT_EQ((robust_pca<T, Host>(this->ctx, mix.M.view(), limited).end), PursuitEnd::IterationLimit);
    limited.max_rank = 2;
    limited.max_iterations = 30;
    EXPECT_LE((robust_pca<T, Host>(this->ctx, mix.M.view(), limited).last.rank), 2);

    RobustPcaOptions<T> warm = this->options;
    warm.L = whole.L.view();
    warm.Y = whole.Y.view();
    warm.mu = whole.last.mu;
    EXPECT_LT((robust_pca<T, Host>(this->ctx, mix.M.view(), warm).last.iteration), whole.last.iteration / 2);
}

TYPED_TEST(RobustPcaTest, SaysWhereItsPrecisionEnds) {
    using T = TypeParam;
    const Mixture<T> mix(200, 40, 2, 0.05);
    this->options.tolerance = 1e-3 * unit_roundoff<T>;
    const RobustPca<T> f = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
    EXPECT_EQ(f.end, PursuitEnd::Stalled);
    EXPECT_LT(f.last.iteration, 200);
    EXPECT_LE(f.last.residual, 1e3 * unit_roundoff<T>);
}

TYPED_TEST(RobustPcaTest, TheBitsDoNotDependOnTheThreads) {
    using T = TypeParam;
    const Mixture<T> mix(3000, 30, 2, 0.05);
    const RobustPca<T> f = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
    Context<Host> one(1);
    const RobustPca<T> again = robust_pca<T, Host>(one, mix.M.view(), this->options);
    EXPECT_TRUE(same_bits<T>(f.L.view(), again.L.view()));
    EXPECT_TRUE(same_bits<T>(f.S.view(), again.S.view()));
}

TYPED_TEST(RobustPcaTest, OddShapesAndZeros) {
    using T = TypeParam;
    for (auto [m, n] : {std::pair<Index, Index>{0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 5}, {5, 1}, {7, 2}}) {
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
        const Matrix<T> zero = filled<T>(m, n, 0), some = random_normal<T>(m, n);
        const RobustPca<T> f = robust_pca<T, Host>(this->ctx, zero.view(), this->options);
        EXPECT_EQ(f.end, PursuitEnd::Converged);
        EXPECT_TRUE(same_bits<T>(f.L.view(), zero.view()));
        EXPECT_EQ((robust_pca<T, Host>(this->ctx, some.view(), this->options).L.rows()), m);
    }
}

TYPED_TEST(RobustPcaTest, RefusesWhatIsOutOfRange) {
    using T = TypeParam;
    Matrix<T> M = random_normal<T>(6, 4);
    const auto refused = [&](auto change) {
        RobustPcaOptions<T> options;
        change(options);
        EXPECT_THROW((robust_pca<T, Host>(this->ctx, M.view(), options)), InvalidArgument);
    };
    refused([](auto& o) { o.lambda = -1; });
    refused([](auto& o) { o.mu = std::numeric_limits<double>::quiet_NaN(); });
    refused([](auto& o) { o.rho = 1; });
    refused([](auto& o) { o.tolerance = 0; });
    refused([](auto& o) { o.max_iterations = 0; });
    refused([](auto& o) { o.max_rank = -1; });
    refused([](auto& o) { o.noise = -1; });
    refused([](auto& o) { o.pursuit = Pursuit::Stable; });
    refused([&](auto& o) { o.pursuit = Pursuit::Stable, o.noise = 1, o.Y = M.view(); });
    const Matrix<T> other = random_normal<T>(5, 4);
    refused([&](auto& o) { o.L = other.view(); });
    M(2, 3) = std::numeric_limits<T>::infinity();
    EXPECT_THROW((robust_pca<T, Host>(this->ctx, M.view(), {})), NonFiniteEntry);
}

TYPED_TEST(RobustPcaTest, IsInterruptedBetweenIterations) {
    using T = TypeParam;
    const Matrix<T> M = random_normal<T>(50, 10);
    this->options.on_step = [&](const RobustPcaStep&) {
        this->ctx.request_stop();
        return true;
    };
    EXPECT_THROW((robust_pca<T, Host>(this->ctx, M.view(), this->options)), Interrupted);
    this->ctx.clear_stop();
}

TYPED_TEST(RobustPcaTest, OneWindowIsTheWholeProblem) {
    using T = TypeParam;
    const Mixture<T> mix(300, 40, 2, 0.05);
    const RobustPca<T> whole = robust_pca<T, Host>(this->ctx, mix.M.view(), this->options);
    RobustPcaWindows<T> windows(300, 10);
    // fewer columns than were first asked for: those that are written stay
    assign<T>(mix.M.view(), windows.columns(this->ctx, 55).col_block({0, 40}));
    windows.columns(this->ctx, 40);
    const auto window = windows.pursue(this->ctx, this->options);
    EXPECT_EQ(window.carried, 0);
    EXPECT_TRUE(same_bits<T>(window.L(), whole.L.view()));
    EXPECT_TRUE(same_bits<T>(window.S(), whole.S.view()));
}

// An object of 8 pixels that stands still through a window of 10 columns. Without carried columns it is background.
// With 30 of them it costs λ·8·10·a = 4a in S, and in L, as a second singular value, √8 √(10·30/40) a = 7.7a.
TYPED_TEST(RobustPcaTest, WindowsCarryTheBackground) {
    using T = TypeParam;
    const Index m = 400, pixels = 8;
    const auto background = [](Index i) { return 1 + 0.5 * std::sin(static_cast<double>(i)); };
    for (const Index carried : {0, 30}) {
        SCOPED_TRACE(carried);
        RobustPcaWindows<T> windows(m, carried);
        for (const Index w : {30, 10}) {
            const double object = w == 10 ? 0.7 : 0;
            const MatrixView<T> M = windows.columns(this->ctx, w);
            for (Index j = 0; j < w; ++j) {
                for (Index i = 0; i < m; ++i) M(i, j) = static_cast<T>(background(i) + (i < pixels ? object : 0));
            }
            const auto window = windows.pursue(this->ctx, this->options);
            EXPECT_EQ(window.carried, w == 30 ? 0 : carried);
            EXPECT_EQ(window.parts.end, PursuitEnd::Converged);
            ASSERT_EQ(window.S().cols, w);
            double most = 0;
            for (Index j = 0; j < w; ++j) {
                for (Index i = 0; i < m; ++i) {
                    const double in_S = i < pixels && carried > 0 ? object : 0;
                    most = std::max(most, std::abs(static_cast<double>(window.S()(i, j)) - in_S));
                }
            }
            EXPECT_LE(most, 1e-3);
        }
    }
}

TYPED_TEST(RobustPcaTest, WindowsRefuseWhatTheyCannotTake) {
    using T = TypeParam;
    EXPECT_THROW((RobustPcaWindows<T>(-1, 0)), InvalidArgument);
    EXPECT_THROW((RobustPcaWindows<T>(3, -1)), InvalidArgument);
    RobustPcaWindows<T> windows(6, 2);
    EXPECT_THROW(windows.pursue(this->ctx), InvalidArgument);
    EXPECT_THROW(windows.columns(this->ctx, 0), InvalidArgument);
    assign<T>(random_normal<T>(6, 4).view(), windows.columns(this->ctx, 4));
    const Matrix<T> L = random_normal<T>(6, 4);
    RobustPcaOptions<T> options;
    options.L = L.view();
    EXPECT_THROW(windows.pursue(this->ctx, options), InvalidArgument);
    windows.pursue(this->ctx, this->options);
    EXPECT_THROW(windows.pursue(this->ctx), InvalidArgument);
}

/// Bytes of a still picture with noise of a few levels and of something that moves in front of it.
Matrix<std::uint8_t> frames_of_bytes(Index m, Index n, int first) {
    Matrix<std::uint8_t> M(m, n);
    std::mt19937 random(static_cast<unsigned>(first) + 5);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            const Index moved = (i - 7 * (j + first) % m + m) % m;
            M(i, j) = static_cast<std::uint8_t>(moved < m / 12 ? 220 : 90 + i % 50 + static_cast<Index>(random() % 5));
        }
    }
    return M;
}

template <class T>
Matrix<T> low_rank_of(Context<Host>& ctx, const RobustPcaOfFrames<T>& windows, Index m, Index n) {
    Matrix<T> L(m, n);
    for (Index j = 0; j < n; ++j)
        windows.low_rank(ctx, j, std::span<T>(L.view().at(0, j), static_cast<std::size_t>(m)));
    return L;
}
template <class T>
Matrix<T> sparse_of(Context<Host>& ctx, const RobustPcaOfFrames<T>& windows, Index m, Index n) {
    Matrix<T> S(m, n);
    for (Index j = 0; j < n; ++j) windows.sparse(ctx, j, std::span<T>(S.view().at(0, j), static_cast<std::size_t>(m)));
    return S;
}

// The iteration of a matrix in memory, in blocks and from a factor of L: the same up to rounding, window by window.
TYPED_TEST(RobustPcaTest, FramesOfBytesAreAMatrix) {
    using T = TypeParam;
    const double near = std::is_same_v<T, double> ? 1e-9 : 2e-4;
    for (const Pursuit pursuit : {Pursuit::InexactAlm, Pursuit::AlternatingDirections, Pursuit::Stable}) {
        for (const ThresholdRoute route : {ThresholdRoute::Gram, ThresholdRoute::Qr}) {
            for (const Index m : {1300, 12}) {
                SCOPED_TRACE(fmt::format("{} {} {}", to_string(pursuit), to_string(route), m));
                RobustPcaOptions<T> options;
                options.pursuit = pursuit;
                options.route = route;
                options.noise = 0.006;
                options.tolerance = 1e-4;
                options.max_iterations = 300;
                RobustPcaWindows<T> matrices(m, 4);
                RobustPcaOfFrames<T> frames(m, 4);
                for (const Index n : {14, 9}) {
                    const Matrix<std::uint8_t> bytes = frames_of_bytes(m, n, n == 14 ? 0 : 14);
                    const MatrixView<T> M = matrices.columns(this->ctx, n);
                    frames.columns(15);  // fewer than were first asked for
                    assign<std::uint8_t>(bytes.view(), frames.columns(n));
                    for (Index j = 0; j < n; ++j) {
                        for (Index i = 0; i < m; ++i) M(i, j) = static_cast<T>(bytes(i, j)) / T(255);
                    }
                    const auto expected = matrices.pursue(this->ctx, options);
                    const auto f = frames.pursue(this->ctx, options);
                    EXPECT_EQ(f.carried, expected.carried);
                    EXPECT_EQ(f.end, expected.parts.end);
                    EXPECT_EQ(f.lambda, expected.parts.lambda);
                    EXPECT_NEAR(static_cast<double>(f.last.iteration),
                                static_cast<double>(expected.parts.last.iteration), 1);
                    EXPECT_EQ(f.last.rank, expected.parts.last.rank);
                    EXPECT_NEAR(f.last.objective / expected.parts.last.objective, 1, near);
                    const Matrix<T> L = low_rank_of<T>(this->ctx, frames, m, n),
                                    S = sparse_of<T>(this->ctx, frames, m, n);
                    EXPECT_LE(distance<T>(L, copy<T>(expected.L())), near);
                    EXPECT_LE(distance<T>(S, copy<T>(expected.S())), 20 * near);
                    Matrix<T> rows(5, n);
                    frames.low_rank_rows(this->ctx, {3, 8}, rows.view());
                    EXPECT_LE(distance<T>(rows, copy<T>(L.view().row_block({3, 8}))), 10 * unit_roundoff<T>);
                }
            }
        }
    }
}

TYPED_TEST(RobustPcaTest, FramesHaveTheSameBitsForAnyThreads) {
    using T = TypeParam;
    const Index m = 5000, n = 12;
    std::vector<Matrix<T>> found;
    for (const int threads : {1, 2, 3}) {
        Context<Host> ctx(threads);
        RobustPcaOfFrames<T> frames(m, 0);
        assign<std::uint8_t>(frames_of_bytes(m, n, 0).view(), frames.columns(n));
        frames.pursue(ctx, this->options);
        found.push_back(low_rank_of<T>(ctx, frames, m, n));
        found.push_back(sparse_of<T>(ctx, frames, m, n));
    }
    for (std::size_t k = 2; k < found.size(); ++k) EXPECT_TRUE(same_bits<T>(found[k].view(), found[k % 2].view()));
}

// M is bytes; L before and after an iteration and what is carried have a column for each rank; Y is there unless the
// pursuit is stable. The rest is sums, blocks and up to 2 MiB of alignment for each matrix: less than half of what L,
// or S, would be.
TYPED_TEST(RobustPcaTest, FramesTakeBytesAndFactors) {
    using T = TypeParam;
#ifdef QUOIN_SANITIZED
    GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
    const Index m = 1000000, n = 12, carried = 6;
    Context<Host> ctx(2);
    for (const bool stable : {true, false}) {
        SCOPED_TRACE(stable);
        const std::size_t before = in_use();
        max_in_use = before;
        Index rank = 0;
        RobustPcaOptions<T> options;
        options.pursuit = stable ? Pursuit::Stable : Pursuit::InexactAlm;
        options.noise = 0.006;
        options.max_iterations = 8;
        options.on_step = [&](const RobustPcaStep& step) {
            rank = std::max(rank, step.rank);
            return true;
        };
        RobustPcaOfFrames<T> frames(m, carried);
        for (const int window : {0, 1}) {
            const MatrixView<std::uint8_t> M = frames.columns(n);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < m; ++i)
                    M(i, j) = static_cast<std::uint8_t>(
                        100 + i % 77 + (i / 1000 + 13 * (j + n * window)) % 29 / 28 * 70 + (i * 31 + j * 17) % 3);
            }
            frames.pursue(ctx, options);
        }
        const double entries = static_cast<double>(m * n), size = sizeof(T), columns = static_cast<double>(n + carried);
        const double factors = 3 * size * static_cast<double>(m * rank);
        const double Y = stable ? 0 : size * static_cast<double>(m) * columns;
        const double taken = static_cast<double>(max_in_use) - static_cast<double>(before);
        EXPECT_LE(taken, entries + factors + Y + 16e6) << "rank " << rank;
        EXPECT_GE(taken, entries + Y) << "or it was not measured";
        EXPECT_LE(rank, n / 2);
    }
}

// Black frames, windows of their own background, and what is refused.
TYPED_TEST(RobustPcaTest, FramesMayBeBlackAndGoOn) {
    using T = TypeParam;
    RobustPcaOfFrames<T> frames(40, 3);
    const MatrixView<std::uint8_t> M = frames.columns(5);
    for (Index j = 0; j < 5; ++j) std::fill_n(M.at(0, j), 40, std::uint8_t(0));
    EXPECT_EQ(frames.pursue(this->ctx, this->options).last.rank, 0);
    EXPECT_EQ(frobenius_norm<T>(sparse_of<T>(this->ctx, frames, 40, 5).view()), 0);
    EXPECT_THROW(frames.pursue(this->ctx), InvalidArgument);

    // a second run goes on from the background of the first
    assign<std::uint8_t>(frames_of_bytes(40, 5, 0).view(), frames.columns(5));
    EXPECT_EQ(frames.pursue(this->ctx, this->options).carried, 3);
    RobustPcaOfFrames<T> second(40, 3);
    second.set_background(copy<T>(frames.background()), copy<T>(frames.background_coordinates().view()));
    for (RobustPcaOfFrames<T>* windows : {&frames, &second}) {
        assign<std::uint8_t>(frames_of_bytes(40, 6, 5).view(), windows->columns(6));
        EXPECT_EQ(windows->pursue(this->ctx, this->options).carried, 3);
    }
    EXPECT_TRUE(
        same_bits<T>(low_rank_of<T>(this->ctx, frames, 40, 6).view(), low_rank_of<T>(this->ctx, second, 40, 6).view()));

    EXPECT_THROW((RobustPcaOfFrames<T>(-1, 0)), InvalidArgument);
    EXPECT_THROW((RobustPcaOfFrames<T>(3, -1)), InvalidArgument);
    EXPECT_THROW(frames.columns(0), InvalidArgument);
    EXPECT_THROW(second.set_background(Matrix<T>(39, 1), Matrix<T>(1, 3)), InvalidArgument);
    EXPECT_THROW(second.set_background(Matrix<T>(40, 1), Matrix<T>(1, 4)), InvalidArgument);
    const Matrix<T> L = random_normal<T>(40, 6);
    RobustPcaOptions<T> options;
    options.L = L.view();
    frames.columns(6);
    EXPECT_THROW(frames.pursue(this->ctx, options), InvalidArgument);
    this->ctx.request_stop();
    EXPECT_THROW(frames.pursue(this->ctx, this->options), Interrupted);
    this->ctx.clear_stop();
}

}  // namespace
}  // namespace quoin::test
