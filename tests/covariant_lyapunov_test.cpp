// Covariant Lyapunov vectors: they are mapped to each other, are eigenvectors where the map is linear, and know the
// flow's direction.

#include "quoin/apps/covariant_lyapunov.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "checks.hpp"

namespace quoin::test {
namespace {

constexpr double u = unit_roundoff<double>;

/// x := Jx of a torus, J given by columns: DΦ = J everywhere.
std::unique_ptr<TangentMap<>> linear(std::vector<double> J) {
    const Index n = std::lround(std::sqrt(static_cast<double>(J.size())));
    return tangent_map(UserMap{std::vector<double>(static_cast<std::size_t>(n), 0.1),
                               [n](const double* x, double* y) { std::copy_n(x, n, y); },
                               [n, J](const double*, MatrixView<const double> X, MatrixView<double> Y) {
                                   for (Index j = 0; j < X.cols; ++j) {
                                       for (Index i = 0; i < n; ++i) {
                                           Y(i, j) = 0;
                                           for (Index l = 0; l < n; ++l)
                                               Y(i, j) += J[static_cast<std::size_t>(i + l * n)] * X(l, j);
                                       }
                                   }
                               }});
}

double cosine(const double* a, const double* b, Index n) {
    double ab = 0, aa = 0, bb = 0;
    for (Index i = 0; i < n; ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
    return std::abs(ab) / std::sqrt(aa * bb);
}

// J = S diag(4, 2, 1/2) S⁻¹, S = [1 1 0; 0 1 1; 0 0 1]: its eigenvectors, at 45°, 60° and 90° with each other.
TEST(CovariantLyapunov, AreTheEigenvectorsOfALinearMap) {
    Context<Host> ctx;
    const auto map = linear({4, 0, 0, -2, 2, 0, 2, -1.5, 0.5});
    const double S[3][3] = {{1, 0, 0}, {1, 1, 0}, {0, 1, 1}};
    CovariantOptions options{.time = 40, .transient = 0, .alignment = 80, .steps_per_qr = 2};
    Index calls = 0;
    options.on_vectors = [&](double, std::span<const double>, MatrixView<const double> V) {
        for (Index j = 0; j < 3; ++j) EXPECT_GE(cosine(V.at(0, j), S[j], 3), 1 - 100 * u) << j;
        ++calls;
    };
    std::vector<double> shares;
    options.progress = [&](double share) { shares.push_back(share); };
    const CovariantLyapunov f = covariant_lyapunov(ctx, *map, options);
    EXPECT_EQ(calls, 20);
    // 40 segments of alignment, and twice 20 + 40
    ASSERT_EQ(shares.size(), 160u);
    for (std::size_t k = 0; k < 160; ++k) EXPECT_EQ(shares[k], static_cast<double>(k + 1) / 160);
    EXPECT_EQ(f.local.cols(), 20);
    EXPECT_EQ(f.split, 2);
    for (Index k = 0; k < 20; ++k) {
        EXPECT_NEAR(f.local(0, k), std::log(4), 1e-12);
        EXPECT_NEAR(f.local(1, k), std::log(2), 1e-12);
        EXPECT_NEAR(f.local(2, k), std::log(0.5), 1e-12);
        // of e₂ + e₃ to the plane of e₁ and e₂
        EXPECT_NEAR(f.angles[static_cast<std::size_t>(k)], std::numbers::pi / 4, 1e-12);
    }
    EXPECT_NEAR(f.least_angles(0, 1), std::numbers::pi / 4, 1e-12);
    EXPECT_NEAR(f.least_angles(1, 2), std::numbers::pi / 3, 1e-12);
    EXPECT_NEAR(f.least_angles(2, 0), std::numbers::pi / 2, 1e-12);
}

// DΦ v_i(x) = ±e^{λ_i kh} v_i(Φ(x)), to law·u times the condition of a segment; and the zero exponent's vector is f(x).
TEST(CovariantLyapunov, AreMappedToEachOther) {
    Context<Host> ctx;
    const auto lorenz = tangent_map(Lorenz63{});
    struct Frame {
        std::vector<double> x;
        Matrix<double> V;
    };
    std::vector<Frame> frames;
    CovariantOptions options{.time = 50, .transient = 20, .alignment = 40};
    options.on_vectors = [&](double, std::span<const double> x, MatrixView<const double> V) {
        frames.push_back({{x.begin(), x.end()}, copy<double>(V)});
    };
    const CovariantLyapunov f = covariant_lyapunov(ctx, *lorenz, options);
    std::reverse(frames.begin(), frames.end());
    ASSERT_EQ(frames.size(), 500u);
    for (std::size_t k = 0; k + 1 < frames.size(); ++k) {
        std::vector<double> x = frames[k].x;
        Matrix<double> V = copy<double>(frames[k].V.view());
        lorenz->advance(ctx, 10, x, V.view());
        ASSERT_EQ(x, frames[k + 1].x);
        for (Index j = 0; j < 3; ++j) {
            double square = 0;
            for (Index i = 0; i < 3; ++i) square += V(i, j) * V(i, j);
            EXPECT_NEAR(std::log(square) / 2, 0.1 * f.local(j, static_cast<Index>(k) + 1), 1e-9);
            EXPECT_GE(cosine(V.data() + 3 * j, frames[k + 1].V.data() + 3 * j, 3), 1 - 1e-12);
        }
        const double *p = x.data(),
                     flow[] = {10 * (p[1] - p[0]), p[0] * (28 - p[2]) - p[1], p[0] * p[1] - 8. / 3 * p[2]};
        EXPECT_GE(cosine(frames[k + 1].V.data() + 3, flow, 3), 1 - 1e-8) << k;
    }
    const Matrix<double> F = finite_time_exponents(f, 50);
    EXPECT_EQ(F.cols(), 10);
    double mean = 0;
    for (Index w = 0; w < 10; ++w) mean += F(0, w) / 10;
    EXPECT_NEAR(mean, f.exponents[0], 1e-12);
    EXPECT_NEAR(f.exponents[0] + f.exponents[1] + f.exponents[2], -41. / 3,
                0.2);  // O(1)/T: V's determinant at both ends
}

// Hénon's map has tangencies of its stable and unstable directions; the cat map is hyperbolic, its directions
// orthogonal.
TEST(CovariantLyapunov, AnglesTellHyperbolicity) {
    Context<Host> ctx;
    const auto henon = covariant_lyapunov(ctx, *tangent_map(Henon{}),
                                          {.time = 5000, .transient = 100, .alignment = 200, .steps_per_qr = 1});
    EXPECT_LE(*std::min_element(henon.angles.begin(), henon.angles.end()), 0.01);
    EXPECT_EQ(henon.split, 1);
    const auto cat = covariant_lyapunov(ctx, *linear({2, 1, 1, 1}),
                                        {.time = 200, .transient = 0, .alignment = 200, .steps_per_qr = 1});
    for (const double angle : cat.angles) EXPECT_NEAR(angle, std::numbers::pi / 2, 1e-7);
}

TEST(CovariantLyapunov, BitsDependNeitherOnThreadsNorOnCheckpoints) {
    const auto system = tangent_map(Lorenz96{.size = 12});
    const auto run = [&](int threads, Index block) {
        Context<Host> ctx(threads);
        return covariant_lyapunov(
            ctx, *system,
            {.exponents = 7, .time = 10, .transient = 5, .alignment = 5, .steps_per_qr = 5, .block = block});
    };
    const CovariantLyapunov first = run(1, 1);
    for (const Index block : {Index{0}, Index{7}, Index{1000}}) {
        const CovariantLyapunov other = run(3, block);
        EXPECT_TRUE(same_bits<double>(first.local.view(), other.local.view()));
        EXPECT_EQ(first.angles, other.angles);
    }
}

TEST(CovariantLyapunov, RefusesWhatIsOutOfRange) {
    Context<Host> ctx;
    const auto lorenz = tangent_map(Lorenz63{});
    EXPECT_THROW(covariant_lyapunov(ctx, *lorenz, {.exponents = 4}), InvalidArgument);
    EXPECT_THROW(covariant_lyapunov(ctx, *lorenz, {.time = 0}), InvalidArgument);
    EXPECT_THROW(covariant_lyapunov(ctx, *lorenz, {.steps_per_qr = 0}), InvalidArgument);
    EXPECT_THROW(covariant_lyapunov(ctx, *lorenz, {.split = 4}), InvalidArgument);
    EXPECT_THROW(covariant_lyapunov(ctx, *lorenz, {.steps_per_qr = 400}), NumericalBreakdown);
    EXPECT_TRUE(
        covariant_lyapunov(ctx, *lorenz, {.time = 1, .transient = 1, .alignment = 1, .split = 3}).angles.empty());
}

}  // namespace
}  // namespace quoin::test
