// Exponents of measured series: Lorenz's, exact and with noise, Hénon's, and refusals.

#include "quoin/apps/lyapunov_series.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "checks.hpp"
#include "gallery.hpp"

namespace quoin::test {
namespace {

/// The first component of N states, `steps` steps apart, on the attractor, with noise of `noise` standard deviations of
/// the series.
Matrix<double> series_of(TangentMap<>& system, Index N, Index steps, double noise) {
    Context<Host> ctx;
    std::vector<double> x = system.initial_state(1);
    system.advance(ctx, 1000, x, {});
    Matrix<double> series(1, N);
    double squares = 0, sum = 0;
    for (Index k = 0; k < N; ++k) {
        system.advance(ctx, steps, x, {});
        series(0, k) = x[0];
        sum += x[0], squares += x[0] * x[0];
    }
    const double n = static_cast<double>(N), deviation = std::sqrt(squares / n - sum * sum / n / n);
    const Matrix<double> normal = random_normal<double>(1, N, 5);
    for (Index k = 0; k < N; ++k) series(0, k) += noise * deviation * normal(0, k);
    return series;
}

// λ₁ = 0.906 of Lorenz 1963 from x alone. Rosenstein et al. find it to 4% in 5000 samples; with 1% noise to 10%.
TEST(Series, NeighboursPartAtTheLargestExponent) {
    Context<Host> ctx;
    const auto lorenz = tangent_map(Lorenz63{});
    for (const double noise : {0., 0.01}) {
        if (quick() && noise > 0) continue;
        const Matrix<double> x = series_of(*lorenz, 4000, 2, noise);
        const SeriesDivergence f =
            series_divergence(ctx, x.view(), {.delays = 3, .lag = 5, .interval = 0.02, .theiler = 50, .horizon = 300});
        EXPECT_NEAR(f.exponent.value, 0.906, 0.15) << noise << " range " << f.first << " to " << f.last;
        EXPECT_GT(f.exponent.half_width, 1.9 * f.exponent.error);
        EXPECT_LE(f.exponent.half_width, 0.3);
        EXPECT_EQ(f.times.size(), 300u);
    }
}

// The neighbourhoods of 4000 samples are not small: λ₁ to 15%, and the others where noise does not cover what
// contracts.
TEST(Series, JacobiansHaveTheSpectrum) {
    Context<Host> ctx;
    const auto lorenz = tangent_map(Lorenz63{});
    const LyapunovSpectrum exact = series_spectrum(ctx, series_of(*lorenz, 4000, 2, 0).view(),
                                                   {.delays = 3, .lag = 5, .interval = 0.02, .theiler = 50});
    EXPECT_NEAR(exact.exponents[0].value, 0.906, 0.15);
    EXPECT_NEAR(exact.exponents[1].value, 0, 0.2);
    EXPECT_NEAR(exact.exponents[2].value, -14.57, 1);
    EXPECT_NEAR(exact.kaplan_yorke.value, 2.06, 0.05);
    EXPECT_EQ(exact.dimension, 3);
    EXPECT_NEAR(exact.time, 79.6, 0.2);  // 4000 samples less the first two delays
    const LyapunovSpectrum noisy =
        series_spectrum(ctx, series_of(*lorenz, 4000, 2, 0.01).view(),
                        {.delays = 3, .lag = 5, .interval = 0.02, .theiler = 50, .neighbours = 30});
    EXPECT_NEAR(noisy.exponents[0].value, 0.906, 0.15);
    EXPECT_LT(noisy.exponents[2].value, -5);

    const auto henon = tangent_map(Henon{});
    const LyapunovSpectrum map = series_spectrum(ctx, series_of(*henon, 4000, 1, 0).view(), {.delays = 2});
    EXPECT_NEAR(map.exponents[0].value, 0.419, 0.03);
    EXPECT_NEAR(map.exponents[1].value, -1.623, 0.1);
}

// A linear map with noise has the same Jacobian in every neighbourhood, and all components are measured: x := Jx + e.
TEST(Series, JacobiansOfALinearProcess) {
    Context<Host> ctx;
    const Matrix<double> e = random_normal<double>(2, 1500, 3);
    Matrix<double> x(2, 1500);
    x(0, 0) = x(1, 0) = 0;
    for (Index k = 0; k + 1 < 1500; ++k) {
        x(0, k + 1) = 0.9 * x(0, k) + 0.3 * x(1, k) + 1e-3 * e(0, k);
        x(1, k + 1) = 0.5 * x(1, k) + 1e-3 * e(1, k);
    }
    const LyapunovSpectrum f = series_spectrum(ctx, x.view(), {.delays = 1, .neighbours = 200});
    EXPECT_NEAR(f.exponents[0].value, std::log(0.9), 0.05);
    EXPECT_NEAR(f.exponents[1].value, std::log(0.5), 0.1);
}

/// The logistic map x := 4x(1 − x), whose exponent is ln 2, as an instrument with `levels` of them gives it.
Matrix<double> logistic_series(Index N, double levels) {
    Matrix<double> series(1, N);
    double x = 0.3;
    for (Index k = 0; k < N; ++k) {
        series(0, k) = std::round(levels * x) / levels;
        x = 4 * x * (1 - x);
    }
    return series;
}

// A state that comes twice is no neighbour of itself. Rounding is noise: 1e-4 of it moves λ₁ by some percent.
TEST(Series, TakesRepeatedValues) {
    Context<Host> ctx;
    const Matrix<double> four_decimals = logistic_series(3000, 1e4);
    for (const Index delays : {1, 3}) {
        const SeriesOptions options{.delays = delays, .horizon = 30};
        EXPECT_NEAR(series_divergence(ctx, four_decimals.view(), options).exponent.value, std::log(2.), 0.035)
            << delays;
        const LyapunovSpectrum f = series_spectrum(ctx, four_decimals.view(), options);
        EXPECT_NEAR(f.exponents[0].value, std::log(2.), 0.02) << delays;
        EXPECT_LT(f.skipped, 30);
        EXPECT_EQ(f.skipped + f.segments, 3000 - delays);
    }
    // integers of a converter with ten bits
    const auto henon = tangent_map(Henon{});
    Matrix<double> x = series_of(*henon, 3000, 1, 0);
    for (Index k = 0; k < 3000; ++k) x(0, k) = std::round(400 * x(0, k));
    const SeriesOptions options{.delays = 2, .horizon = 30};
    EXPECT_NEAR(series_divergence(ctx, x.view(), options).exponent.value, 0.419, 0.06);
    EXPECT_NEAR(series_spectrum(ctx, x.view(), options).exponents[0].value, 0.419, 0.03);
}

// x(t) = 2cos(ω) x(t − 1) − x(t − 2) puts three delays of a sine into a plane: no Jacobian, and the largest exponent is
// 0.
TEST(Series, HasTheLargestExponentWithoutJacobians) {
    Context<Host> ctx;
    Matrix<double> x(1, 1500);
    for (Index k = 0; k < 1500; ++k) x(0, k) = std::sin(0.1 * static_cast<double>(k));
    const SeriesOptions options{.delays = 3, .lag = 10};
    EXPECT_NEAR(series_divergence(ctx, x.view(), options).exponent.value, 0, 1e-3);
    const LyapunovSpectrum f = series_spectrum(ctx, x.view(), options);
    EXPECT_EQ(f.segments, 0);
    EXPECT_EQ(f.skipped, 147);
    EXPECT_TRUE(std::isnan(f.exponents[0].value) && std::isnan(f.kaplan_yorke.value));
}

TEST(Series, SaysThatAConstantOrPeriodicSeriesIsOne) {
    Context<Host> ctx;
    Matrix<double> x(1, 1000);
    const auto message = [&] {
        try {
            series_divergence(ctx, x.view());
        } catch (const InvalidArgument& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    std::fill_n(x.data(), 1000, 7.);
    EXPECT_NE(message().find("the series is constant"), std::string::npos);
    for (Index k = 0; k < 1000; ++k) x(0, k) = std::sin(2 * std::numbers::pi * static_cast<double>(k) / 50);
    EXPECT_NE(message().find("repeats itself every 50 samples"), std::string::npos);
    EXPECT_THROW(series_spectrum(ctx, x.view()), InvalidArgument);
}

TEST(Series, BitsDoNotDependOnThreads) {
    const Matrix<double> x = series_of(*tangent_map(Henon{}), 500, 1, 0);
    Context<Host> one(1), three(3);
    EXPECT_TRUE(same_bits<double>(series_spectrum(one, x.view(), {.delays = 2}).averages.view(),
                                  series_spectrum(three, x.view(), {.delays = 2}).averages.view()));
    EXPECT_EQ(series_divergence(one, x.view(), {.delays = 2}).logarithms,
              series_divergence(three, x.view(), {.delays = 2}).logarithms);
}

TEST(Series, RefusesWhatIsOutOfRange) {
    Context<Host> ctx;
    Matrix<double> x = series_of(*tangent_map(Henon{}), 500, 1, 0);
    for (const SeriesOptions& o :
         {SeriesOptions{.delays = 0}, SeriesOptions{.lag = 0}, SeriesOptions{.delays = 50, .lag = 10},
          SeriesOptions{.interval = 0}, SeriesOptions{.neighbours = 2}, SeriesOptions{.exponents = 4},
          SeriesOptions{.evolve = -1}, SeriesOptions{.theiler = -1}, SeriesOptions{.neighbours = 400}}) {
        EXPECT_THROW(series_spectrum(ctx, x.view(), o), InvalidArgument);
    }
    EXPECT_THROW(series_divergence(ctx, x.view(), {.horizon = 5}), InvalidArgument);
    EXPECT_THROW(series_divergence(ctx, x.view(), {.horizon = 490}), InvalidArgument);
    x(0, 77) = std::numeric_limits<double>::quiet_NaN();
    try {
        series_spectrum(ctx, x.view());
        ADD_FAILURE() << "NaN was taken";
    } catch (const NonFiniteEntry& e) {
        EXPECT_EQ(e.row, 77);
        EXPECT_EQ(e.col, 0);
    }
}

}  // namespace
}  // namespace quoin::test
