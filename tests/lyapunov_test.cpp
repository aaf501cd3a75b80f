// Lyapunov spectra: what holds exactly of tangent maps, of the exponents, of their errors; and spectra that are known.

#include "quoin/apps/lyapunov.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <numbers>
#include <optional>
#include <random>
#include <tuple>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"
#include "lyapunov/couple.hpp"
#include "lyapunov/estimates.hpp"
#include "lyapunov/etdrk4.hpp"
#include "lyapunov/mean_error.hpp"
#include "lyapunov/pairs.hpp"
#include "quoin/apps/dual.hpp"

namespace quoin::test {
namespace {

constexpr double u = unit_roundoff<double>;

using Make = std::unique_ptr<TangentMap<>> (*)(double step_factor);

struct System {
    const char* name;
    Make make;
};

template <class Parameters>
std::unique_ptr<TangentMap<>> shortened(Parameters s, double step_factor) {
    s.step *= step_factor;
    return tangent_map(s);
}

/// Rössler's flow through the interface of the caller's own systems.
std::unique_ptr<TangentMap<>> roessler(double step_factor) {
    return tangent_map(UserFlow{{1, 1, 0},
                                [](const double* x, double* d) {
                                    d[0] = -x[1] - x[2];
                                    d[1] = x[0] + 0.2 * x[1];
                                    d[2] = 0.2 + x[2] * (x[0] - 5.7);
                                },
                                [](const double* x, MatrixView<const double> X, MatrixView<double> d) {
                                    for (Index j = 0; j < X.cols; ++j) {
                                        d(0, j) = -X(1, j) - X(2, j);
                                        d(1, j) = X(0, j) + 0.2 * X(1, j);
                                        d(2, j) = X(2, j) * (x[0] - 5.7) + x[2] * X(0, j);
                                    }
                                },
                                0.02 * step_factor});
}

/// The logistic map of slope 4, conjugate to a tent: λ = ln 2.
std::unique_ptr<TangentMap<>> logistic(double) {
    return tangent_map(UserMap{{0.3},
                               [](const double* x, double* y) { y[0] = 4 * x[0] * (1 - x[0]); },
                               [](const double* x, MatrixView<const double> X, MatrixView<double> Y) {
                                   for (Index j = 0; j < X.cols; ++j) Y(0, j) = (4 - 8 * x[0]) * X(0, j);
                               }});
}

/// Mackey and Glass's equation with a copy of x that follows it, as the caller's own by dual numbers: two components.
std::unique_ptr<TangentMap<>> delayed(double) {
    return tangent_map(differentiated_delay_flow(
        {0.5, 0.4},
        [](const auto* x, const auto* y, auto* d) {
            using std::pow;
            d[0] = 0.2 * y[0] / (1 + pow(y[0], 10)) - 0.1 * x[0];
            d[1] = x[0] - y[1];
        },
        17, 24));
}

template <class F>
std::string message_of(F&& f) {
    try {
        f();
    } catch (const InvalidArgument& e) {
        return e.what();
    } catch (const Error& e) {
        return std::string("of another class: ") + e.what();
    }
    return "nothing was thrown";
}

const System systems[] = {
    {"lorenz63", [](double f) { return shortened(Lorenz63{}, f); }},
    {"henon", [](double) { return tangent_map(Henon{}); }},
    {"lorenz96", [](double f) { return shortened(Lorenz96{.size = 37}, f); }},
    {"kuramoto_sivashinsky", [](double f) { return shortened(KuramotoSivashinsky{.modes = 11, .step = 0.02}, f); }},
    {"fput", [](double f) { return shortened(FputBeta{.size = 19}, f); }},
    {"fput_ring", [](double f) { return shortened(FputBeta{.size = 12, .periodic = true}, f); }},
    {"wca_2d", [](double f) { return shortened(Particles{.count = 13, .dimensions = 2}, f); }},
    {"wca_3d", [](double f) { return shortened(Particles{.count = 70, .dimensions = 3, .density = 0.8}, f); }},
    {"lennard_jones_3d",
     [](double f) {
         return shortened(Particles{.count = 100, .potential = Potential::LennardJones, .density = 0.7}, f);
     }},
    {"yukawa_2d",
     [](double f) {
         return shortened(Particles{.count = 40,
                                    .dimensions = 2,
                                    .potential = Potential::Yukawa,
                                    .density = 0.1,
                                    .kappa = 2,
                                    .step = 0.01},
                          f);
     }},
    {"soft_3d",
     [](double f) { return shortened(Particles{.count = 40, .potential = Potential::Soft, .step = 0.005}, f); }},
    {"user_flow", roessler},
    {"user_map", logistic},
    {"mackey_glass",
     [](double f) {
         return tangent_map(MackeyGlass{.tau = 23, .intervals = static_cast<Index>(std::lround(40 / f))});
     }},
    {"user_delay_flow", delayed},
};

class EverySystem : public testing::TestWithParam<System> {
protected:
    std::unique_ptr<TangentMap<>> system = GetParam().make(1);
    Context<Host> ctx;

    /// A state on its way.
    std::vector<double> state() {
        std::vector<double> x = system->initial_state(3);
        system->advance(ctx, 300, x, {});
        return x;
    }
};
INSTANTIATE_TEST_SUITE_P(Systems, EverySystem, testing::ValuesIn(systems),
                         [](const auto& info) { return std::string(info.param.name); });

// (Φ(x + εv) − Φ(x − εv))/2ε = DΦ(x)v + O(ε²) + O(u/ε): halving ε takes three quarters of the difference away, until it
// is a rounding error. A product that is wrong differs by as much for every ε. A cutoff is a kink of DΦ: there ε is so
// small that no pair crosses it.
TEST_P(EverySystem, TangentVectorsAreDerivatives) {
    const std::vector<double> x = state();
    // a block and a part of one; more steps than whose pairs are kept, but of maps, which stretch by 4 at once, two
    const Index n = system->dimension(), p = 11, steps = system->step() == 1 ? 2 : 19;
    Matrix<double> X = random_normal<double>(n, p, 5);
    for (Index j = 0; j < p; ++j) {
        double square = 0;
        for (Index i = 0; i < n; ++i) square += X(i, j) * X(i, j);
        for (Index i = 0; i < n; ++i) X(i, j) /= std::sqrt(square);
    }
    const Matrix<double> V = copy<double>(X.view());
    std::vector<double> end = x;
    system->advance(ctx, steps, end, X.view());
    const bool has_kinks = system->description().starts_with("particles");
    double scale = 0;
    for (const double value : end) scale = std::max(scale, std::abs(value));

    for (Index j = 0; j < p; ++j) {
        double before = 0, norm = 0;
        for (Index i = 0; i < n; ++i) norm = std::max(norm, std::abs(X(i, j)));
        for (double epsilon : {4e-4, 2e-4, 1e-4}) {
            if (has_kinks) epsilon /= 100;
            std::vector<double> forth = x, back = x;
            for (Index i = 0; i < n; ++i) {
                forth[static_cast<std::size_t>(i)] += epsilon * V(i, j);
                back[static_cast<std::size_t>(i)] -= epsilon * V(i, j);
            }
            system->advance(ctx, steps, forth, {});
            system->advance(ctx, steps, back, {});
            double difference = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                difference =
                    std::max(difference, std::abs((forth[i] - back[i]) / (2 * epsilon) - X(static_cast<Index>(i), j)));
            }
            // a rounding of the state at the start grows like the vectors
            const double rounding = 10 * static_cast<double>(steps) * u * scale * std::max(1., norm) / epsilon;
            if (before > 0) {
                EXPECT_LE(difference, 0.3 * before + rounding) << "vector " << j << ", epsilon " << epsilon;
            }
            EXPECT_LE(difference, 0.1 * std::max(1., norm)) << "vector " << j;
            before = std::max(difference, rounding);
        }
    }
}

TEST_P(EverySystem, BitsDependNeitherOnThreadsNorOnTheSplittingOfColumns) {
    const std::vector<double> x = state();
    const Index n = system->dimension(), p = std::min<Index>(n, 40);
    const Matrix<double> V = random_normal<double>(n, p, 6);
    std::vector<Matrix<double>> ends;
    std::vector<std::vector<double>> states;
    for (const int threads : {1, 3}) {
        Context<Host> some(threads);
        ends.push_back(copy<double>(V.view()));
        states.push_back(x);
        system->advance(some, 20, states.back(), ends.back().view());
    }
    std::vector<double> alone = x;
    system->advance(ctx, 20, alone, {});
    EXPECT_EQ(states[0], states[1]);
    EXPECT_EQ(states[0], alone) << "tangent vectors change the orbit";
    EXPECT_TRUE(same_bits<double>(ends[0].view(), ends[1].view()));

    // a method of QR changes no orbit and, over a short time, no exponent
    LyapunovOptions options{.exponents = p,
                            .time = 50 * system->step(),
                            .transient = 0,
                            .alignment = 10 * system->step(),
                            .steps_per_qr = 2};
    std::vector<LyapunovSpectrum> spectra;
    std::vector<Method> methods(std::begin(named_methods), std::end(named_methods));
    methods.push_back(Method::ModifiedGramSchmidt);
    for (const Method method : methods) {
        options.qr.method = method;
        spectra.push_back(lyapunov_spectrum(ctx, *system, options));
        EXPECT_EQ(spectra.back().method, method);
        EXPECT_EQ(spectra.back().state, spectra[0].state);
        for (std::size_t i = 0; i < spectra[0].exponents.size(); ++i) {
            // each of 60 segments commits law·p·u in a norm of condition e^{Δ}, Δ what the vectors have drawn apart in
            // two steps; at most 1e3 here. Divided by the time of a segment.
            const double bound = law * static_cast<double>(p) * u * 60 * 1e3 / (2 * system->step());
            EXPECT_NEAR(spectra.back().exponents[i].value, spectra[0].exponents[i].value, bound)
                << to_string(method) << ", exponent " << i;
        }
    }
}

TEST_P(EverySystem, GoesOnFromACheckpointWithTheSameBits) {
    const std::string path = (std::filesystem::temp_directory_path() /
                              (std::string("quoin-lyapunov-") + GetParam().name + std::to_string(getpid())))
                                 .string();
    const double h = system->step();
    LyapunovOptions options{.exponents = std::min<Index>(system->dimension(), 9),
                            .time = 700 * h,
                            .transient = 40 * h,
                            .alignment = 40 * h,
                            .steps_per_qr = 1};
    const LyapunovSpectrum whole = lyapunov_spectrum(ctx, *system, options);
    ASSERT_EQ(whole.segments, 700);
    options.checkpoint = path;
    // in the transient, among the alignment, and where batches have been joined
    for (const Index stop : {Index{17}, Index{60}, Index{81}, Index{555}}) {
        Index left = stop;
        options.on_segment = [&](const LyapunovProgress& progress) {
            return static_cast<Index>(std::lround(progress.time / h)) < left;
        };
        EXPECT_FALSE(lyapunov_spectrum(ctx, *GetParam().make(1), options).completed);
    }
    options.on_segment = nullptr;
    Context<Host> other(2);
    const LyapunovSpectrum resumed = lyapunov_spectrum(other, *GetParam().make(1), options);
    EXPECT_TRUE(resumed.completed);
    EXPECT_EQ(resumed.state, whole.state);
    ASSERT_EQ(resumed.exponents.size(), whole.exponents.size());
    for (std::size_t i = 0; i < whole.exponents.size(); ++i) {
        EXPECT_EQ(resumed.exponents[i].value, whole.exponents[i].value);
        EXPECT_EQ(resumed.exponents[i].error, whole.exponents[i].error);
    }
    EXPECT_TRUE(same_bits<double>(resumed.averages.view(), whole.averages.view()));
    std::filesystem::remove(path);
}

// ---- vectors in f32 -------------------------------------------------------------------------------------------------

// The orbit has the bits of the run with vectors in f64, and so have averages over its chaos. Roundings of Z to f32
// are random and change log|r_ii| of a segment by law·√p·u times the condition of Z, at most 10 after two steps of
// these.
TEST(F32Vectors, GiveTheSpectrumOfTheSameOrbit) {
    Context<Host> ctx;
    const Method methods[] = {Method::Auto, Method::BlockedHouseholder, Method::CholeskyQR2};
    for (const Index k : {0, 2, 4, 5, 6, 7, 8, 9, 10, 11}) {
        SCOPED_TRACE(systems[k].name);
        const auto wide = systems[k].make(1);
        const auto narrow = with_f32_vectors(systems[k].make(1));
        const double h = wide->step();
        LyapunovOptions options{.exponents = std::min<Index>(wide->dimension(), 60),
                                .time = 100 * h,
                                .transient = 50 * h,
                                .alignment = 10 * h,
                                .steps_per_qr = 2};
        const LyapunovSpectrum expected = lyapunov_spectrum(ctx, *wide, options);
        for (const Method method : in_turn(methods, k)) {
            options.qr.method = method;
            const LyapunovSpectrum f = lyapunov_spectrum(ctx, *narrow, options);
            EXPECT_EQ(f.state, expected.state);
            EXPECT_EQ(f.dimension, expected.dimension);
            const double p = static_cast<double>(f.exponents.size());
            const double bound = law * std::sqrt(p) * unit_roundoff<float> * 10 / (2 * h);
            double largest = 0;
            for (std::size_t i = 0; i < f.exponents.size(); ++i) {
                const double difference = std::abs(f.exponents[i].value - expected.exponents[i].value);
                if (!(difference <= largest)) largest = difference;
            }
            EXPECT_LE(largest, bound) << to_string(method);
            EXPECT_GT(largest, 0) << "the vectors are in f32";
        }
    }
    EXPECT_THROW(with_f32_vectors(nullptr), InvalidArgument);
}

// Rounding changes exponents by far less than chaos leaves uncertain.
TEST(F32Vectors, AgreeWithinTheStandardError) {
    Context<Host> ctx;
    const LyapunovOptions options{.time = quick() ? 50. : 200., .transient = 10, .alignment = 10, .steps_per_qr = 5};
    const auto wide = lyapunov_spectrum(ctx, *tangent_map(Lorenz96{}), options);
    const auto narrow = lyapunov_spectrum(ctx, *with_f32_vectors(tangent_map(Lorenz96{})), options);
    for (std::size_t i = 0; i < wide.exponents.size(); ++i) {
        EXPECT_LE(std::abs(narrow.exponents[i].value - wide.exponents[i].value), 0.1 * wide.exponents[i].error) << i;
    }
    EXPECT_NEAR(narrow.kaplan_yorke.value, wide.kaplan_yorke.value, 0.1 * wide.kaplan_yorke.error);
    EXPECT_NEAR(narrow.sum.value, -40, 1e-3);
}

TEST(F32Vectors, GoOnFromACheckpointOfTheirOwn) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("quoin-f32-" + std::to_string(getpid()))).string();
    Context<Host> ctx;
    const auto wide = tangent_map(Lorenz96{.size = 12});
    const auto narrow = with_f32_vectors(tangent_map(Lorenz96{.size = 12}));
    LyapunovOptions options{.time = 20, .transient = 1, .alignment = 1};
    const LyapunovSpectrum whole = lyapunov_spectrum(ctx, *narrow, options);
    options.checkpoint = path;
    options.on_segment = [](const LyapunovProgress& progress) { return progress.time < 9; };
    EXPECT_FALSE(lyapunov_spectrum(ctx, *narrow, options).completed);
    options.on_segment = nullptr;
    EXPECT_NE(message_of([&] { lyapunov_spectrum(ctx, *wide, options); }).find("'vectors: f32 on host'"),
              std::string::npos);
    const LyapunovSpectrum resumed = lyapunov_spectrum(ctx, *narrow, options);
    EXPECT_TRUE(same_bits<double>(resumed.averages.view(), whole.averages.view()));
    std::filesystem::remove(path);
}

// ---- sums -----------------------------------------------------------------------------------------------------------

double departure_from_divergence(TangentMap<>& system, double time, double tau) {
    Context<Host> ctx;
    const LyapunovSpectrum f =
        lyapunov_spectrum(ctx, system,
                          {.time = time,
                           .transient = time,
                           .alignment = 0,
                           .steps_per_qr = static_cast<Index>(std::lround(tau / system.step()))});
    EXPECT_EQ(f.segments, std::lround(time / tau));
    return std::abs(f.sum.value - *system.divergence());
}

// det of the integrator's map is exp(h div f)(1 + O(h⁶)), at order 5: half the step, at most 1/16 of the departure.
TEST(Sum, IsTheDivergenceOfAFlow) {
    for (const Make make : {systems[0].make, systems[2].make}) {
        const double coarse = departure_from_divergence(*make(2), 4, 0.2),
                     fine = departure_from_divergence(*make(1), 4, 0.2);
        EXPECT_LE(fine, coarse / 16) << make(1)->description();
        EXPECT_LE(coarse, 1e-2);
    }
    // of order 4, and its linear part is exact
    const auto ks = [](double step) { return tangent_map(KuramotoSivashinsky{.modes = 6, .step = step}); };
    const double coarse = departure_from_divergence(*ks(0.1), 20, 0.1),
                 fine = departure_from_divergence(*ks(0.05), 20, 0.1);
    EXPECT_LE(fine, coarse / 8);
    EXPECT_LE(coarse, 1e-2);
}

// Without a linear part ETDRK4 is the classical method of Runge and Kutta. The means are over terms of at most 4 + 1 +
// 8e = 27 times h on a circle of radius 1, of some eight roundings each.
TEST(Etdrk4, IsRungeAndKuttasWithoutALinearPart) {
    const double h = 0.5, expected[] = {1, 1, h / 2, h / 6, h / 3, h / 6};
    const Matrix<double> weights = etdrk4_weights(h, std::vector<double>{0, 0});
    for (Index i = 0; i < 2; ++i) {
        for (Index j = 0; j < 6; ++j) EXPECT_NEAR(weights(i, j), expected[j], 8 * 27 * h * u) << j;
    }
}

// Half the step, a sixteenth of the error, where no step times |λ| is large: λ of the last mode is −3.6.
TEST(Etdrk4, IsOfOrderFour) {
    Context<Host> ctx;
    const auto system = tangent_map(KuramotoSivashinsky{.length = 16, .modes = 4});
    std::vector<double> start = system->initial_state(3);
    system->advance(ctx, 1000, start, {});
    const auto after = [&](double step) {
        const auto finer = tangent_map(KuramotoSivashinsky{.length = 16, .modes = 4, .step = step});
        std::vector<double> x = start;
        finer->advance(ctx, static_cast<Index>(std::lround(3.2 / step)), x, {});
        return x;
    };
    const auto difference = [](const std::vector<double>& x, const std::vector<double>& y) {
        double largest = 0;
        for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
        return largest;
    };
    const std::vector<double> coarse = after(0.1), fine = after(0.05), finest = after(0.025);
    EXPECT_NEAR(difference(coarse, fine) / difference(fine, finest), 16, 2);
}

// |det DΦ| = b and 1 exactly, so that only the roundings of QR are left: law·n·u for each column of each segment.
TEST(Sum, IsExactForMapsOfConstantDeterminant) {
    Context<Host> ctx;
    for (const System& s : systems) {
        const auto system = s.make(1);
        if (!system->divergence() || (system->step() != 1 && *system->divergence() != 0)) continue;
        if (quick() && system->dimension() > 100) continue;
        const double h = system->step(), n = static_cast<double>(system->dimension());
        const LyapunovSpectrum f = lyapunov_spectrum(
            ctx, *system, {.time = 60 * h, .transient = 50 * h, .alignment = 5 * h, .steps_per_qr = 1});
        EXPECT_LE(std::abs(f.sum.value - *system->divergence()), law * n * n * u / h) << s.name;
        EXPECT_NEAR(f.kaplan_yorke.value, s.name == std::string("henon") ? 1.26 : n, 0.3) << s.name;
    }
}

// ---- Hamiltonian systems --------------------------------------------------------------------------------------------

const System hamiltonian[] = {systems[4], systems[5], systems[6], systems[7], systems[8], systems[9], systems[10]};

class Hamiltonian : public EverySystem {};
INSTANTIATE_TEST_SUITE_P(Systems, Hamiltonian, testing::ValuesIn(hamiltonian),
                         [](const auto& info) { return std::string(info.param.name); });

// MᵀJM = J of M = DΦᵏ, J = [0 I; −I 0].
TEST_P(Hamiltonian, VerletIsSymplectic) {
    std::vector<double> x = state();
    const Index n = system->dimension(), m = n / 2, steps = 21;
    Matrix<double> M = identity<double>(n);
    system->advance(ctx, steps, x, M.view());
    const double norm = frobenius_norm<double>(M.view());
    Matrix<double> JM(n, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            JM(i, j) = M(m + i, j);
            JM(m + i, j) = -M(i, j);
        }
    }
    const Matrix<double> MJM = product<double>(transposed<double>(M.view()).view(), JM.view());
    double departure = 0;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < n; ++i) {
            const double J = j == i + m ? 1 : i == j + m ? -1 : 0;
            departure = std::max(departure, std::abs(MJM(i, j) - J));
        }
    }
    // each step rounds a vector a few times, relative to vectors of norm ‖M‖
    EXPECT_LE(departure, 10 * static_cast<double>(steps) * u * norm * norm);
    EXPECT_GE(norm, 1);
}

// Verlet conserves an energy that differs from H by O(h²): what H wavers by falls to a quarter with half the step.
TEST_P(Hamiltonian, EnergyWaversByTheSquareOfTheStep) {
    const std::vector<double> start = state();
    double wavering[2];
    for (const int half : {0, 1}) {
        const auto finer = GetParam().make(half ? 0.25 : 0.5);
        std::vector<double> x = start;
        const double energy = *finer->energy(x);
        wavering[half] = 0;
        for (int k = 0; k < 100; ++k) {
            finer->advance(ctx, half ? 4 : 2, x, {});
            wavering[half] = std::max(wavering[half], std::abs(*finer->energy(x) - energy));
        }
        EXPECT_LE(wavering[half], 0.02 * std::abs(energy));
    }
    EXPECT_LE(wavering[1], 0.35 * wavering[0]);
}

const System without_walls[] = {systems[5], systems[6], systems[7], systems[8], systems[9], systems[10]};

class WithoutWalls : public EverySystem {};
INSTANTIATE_TEST_SUITE_P(Systems, WithoutWalls, testing::ValuesIn(without_walls),
                         [](const auto& info) { return std::string(info.param.name); });

// Forces sum to zero: momentum stays to rounding.
TEST_P(WithoutWalls, ConserveMomentum) {
    const int d = std::string(GetParam().name).ends_with("3d")   ? 3
                  : std::string(GetParam().name).ends_with("2d") ? 2
                                                                 : 1;
    std::vector<double> x = state();
    system->advance(ctx, 200, x, {});
    const std::size_t m = x.size() / 2;
    for (int a = 0; a < d; ++a) {
        double sum = 0, magnitudes = 0;
        for (std::size_t i = m + static_cast<std::size_t>(a); i < 2 * m; i += static_cast<std::size_t>(d)) {
            sum += x[i];
            magnitudes += std::abs(x[i]);
        }
        EXPECT_LE(std::abs(sum), 500 * 10 * u * magnitudes);
    }
}

/// Pairing, zeros and the rest of a Hamiltonian spectrum after a time T: pairs differ from zero by what the first and
/// last frames contribute, O(1)/T, and vanishing exponents by log(T)/T, since their vectors grow linearly.
void expect_hamiltonian_spectrum(TangentMap<>& system, double time, Index steps_per_qr) {
    Context<Host> ctx;
    const LyapunovSpectrum f =
        lyapunov_spectrum(ctx, system, {.time = time, .transient = 20, .alignment = 20, .steps_per_qr = steps_per_qr});
    const Index n = system.dimension();
    const auto lambda = [&](Index i) { return f.exponents[static_cast<std::size_t>(i)].value; };
    for (Index i = 0; i < n / 2; ++i) EXPECT_LE(std::abs(lambda(i) + lambda(n - 1 - i)), 10 / time) << "pair " << i;
    const double bound = 3 * std::log(time) / time;
    Index zeros = 0;
    for (Index i = 0; i < n; ++i) zeros += std::abs(lambda(i)) <= bound;
    EXPECT_EQ(zeros, system.vanishing_exponents());
    EXPECT_EQ(f.positive + f.vanishing / 2, n / 2);
    EXPECT_LE(std::abs(*f.energy_drift), 0.01);
}

TEST(HamiltonianSpectrum, FputPairsAndHasItsZeros) {
    expect_hamiltonian_spectrum(*tangent_map(FputBeta{.size = 4, .energy = 5}), quick() ? 2000 : 8000, 5);
    expect_hamiltonian_spectrum(*tangent_map(FputBeta{.size = 5, .energy = 5, .periodic = true}), quick() ? 2000 : 8000,
                                5);
}
TEST(HamiltonianSpectrum, ParticlesPairAndHaveSixZerosIn2D) {
    const Particles soft{.count = 6, .dimensions = 2, .potential = Potential::Soft, .density = 0.6, .step = 0.005};
    expect_hamiltonian_spectrum(*tangent_map(soft), quick() ? 150 : 400, 20);
}
TEST(HamiltonianSpectrum, ParticlesPairAndHaveEightZerosIn3D) {
    const Particles soft{.count = 8, .dimensions = 3, .potential = Potential::Soft, .density = 0.6, .step = 0.005};
    expect_hamiltonian_spectrum(*tangent_map(soft), quick() ? 150 : 400, 20);
    // of a force with kinks, in the limit of short steps
    if (!quick()) {
        expect_hamiltonian_spectrum(
            *tangent_map(Particles{.count = 8, .dimensions = 3, .density = 0.6, .step = 0.0005}), 200, 80);
    }
}

// ---- pairs of particles ---------------------------------------------------------------------------------------------

template <int D>
void expect_cells_find_all_pairs(Index count, double side, double cutoff, std::uint64_t seed) {
    std::mt19937_64 engine(seed);
    // positions far outside the box as well, and on its border
    std::uniform_real_distribution<double> place(-3 * side, 4 * side);
    std::vector<double> q(static_cast<std::size_t>(D * count));
    for (double& value : q) value = place(engine);
    q[0] = 0, q[1] = side, q[2] = -side;
    const PairSearch<D> search(count, side, cutoff);
    ASSERT_TRUE(search.has_cells());
    std::vector<std::tuple<Index, Index, double>> all, cells;
    const auto collect = [](auto& into) {
        return [&into](Index i, Index j, const double*, double square) {
            into.push_back({std::min(i, j), std::max(i, j), square});
        };
    };
    search.by_pairs(q.data(), collect(all));
    search.by_cells(q.data(), collect(cells));
    std::sort(all.begin(), all.end());
    std::sort(cells.begin(), cells.end());
    EXPECT_FALSE(all.empty());
    EXPECT_EQ(all, cells);
}

TEST(PairSearch, CellsFindWhatAllPairsFind) {
    for (const std::uint64_t seed : {1, 2, 3}) {
        expect_cells_find_all_pairs<2>(200, 10, 1.3, seed);
        expect_cells_find_all_pairs<2>(50, 3.31, 1.1, seed);  // three cells a side
        expect_cells_find_all_pairs<3>(300, 9, 1.7, seed);
        expect_cells_find_all_pairs<3>(100, 3.01, 1, seed);
        expect_cells_find_all_pairs<3>(20, 50, 15, seed);  // few particles, few cells
    }
    EXPECT_FALSE(PairSearch<3>(10, 2.9, 1).has_cells());
}

TEST(PairSearch, TakesPositionsThatAreNoNumbers) {
    std::vector<double> q(30, std::numeric_limits<double>::quiet_NaN());
    q[4] = std::numeric_limits<double>::infinity();
    q[9] = 1e300;
    PairSearch<3>(10, 9, 1).for_each(q.data(),
                                     [](Index, Index, const double*, double square) { EXPECT_GE(square, 0); });
}

TEST(Couple, IsTheSumOverPairs) {
    for (const int d : {1, 2, 3}) {
        const Index particles = 7, W = couple_width;
        const Matrix<double> X = random_normal<double>(W, particles * d, 1), numbers = random_normal<double>(5, 100, 2);
        Matrix<double> F = random_normal<double>(W, particles * d, 3);
        Matrix<long double> expected(W, particles * d), magnitude(W, particles * d);
        for (Index k = 0; k < W * particles * d; ++k) {
            expected.data()[k] = F.data()[k];
            magnitude.data()[k] = std::abs(F.data()[k]);
        }
        std::vector<Coupling> pairs;
        for (Index c = 0; c < 100; ++c) {
            const Index i = c % particles, j = (c / particles + 1 + i) % particles;
            if (i == j) continue;
            pairs.push_back({i, j, numbers(0, c), numbers(1, c), {numbers(2, c), numbers(3, c), numbers(4, c)}});
            for (Index l = 0; l < W; ++l) {
                long double along = 0;
                for (int a = 0; a < d; ++a)
                    along += static_cast<long double>(pairs.back().r[a]) * (X(l, i * d + a) - X(l, j * d + a));
                for (int a = 0; a < d; ++a) {
                    const long double delta =
                        static_cast<long double>(pairs.back().alpha) * (X(l, i * d + a) - X(l, j * d + a)) +
                        static_cast<long double>(pairs.back().beta) * pairs.back().r[a] * along;
                    expected(l, i * d + a) += delta;
                    expected(l, j * d + a) -= delta;
                    const long double size = 10 * (std::abs(pairs.back().alpha) + std::abs(pairs.back().beta)) * 30;
                    magnitude(l, i * d + a) += size;
                    magnitude(l, j * d + a) += size;
                }
            }
        }
        couple(pairs, d, X.data(), F.data());
        for (Index k = 0; k < W * particles * d; ++k) {
            EXPECT_LE(std::abs(static_cast<double>(F.data()[k] - expected.data()[k])),
                      100 * u * static_cast<double>(magnitude.data()[k]));
        }
    }
}

// ---- delays ---------------------------------------------------------------------------------------------------------

// ẋ = −π/2 x(t − 1) has the solution sin(πt/2): half the step, a sixteenth of the error of order 4.
TEST(Delay, StepsHaveOrderFour) {
    Context<Host> ctx;
    double before = 0;
    for (const Index N : {10, 20, 40, 80}) {
        const auto system = tangent_map(differentiated_delay_flow(
            {0}, [](const auto*, const auto* y, auto* d) { d[0] = -std::numbers::pi / 2 * y[0]; }, 1, N));
        const auto exact = [&](Index i) {
            return std::sin(std::numbers::pi / 2 * static_cast<double>(i) / static_cast<double>(N));
        };
        std::vector<double> x;
        for (Index i = 0; i <= N; ++i) x.push_back(exact(i));
        system->advance(ctx, 7 * N, x, {});
        double error = 0;
        for (Index i = 0; i <= N; ++i)
            error = std::max(error, std::abs(x[static_cast<std::size_t>(i)] - exact(i + 7 * N)));
        if (before > 0) {
            EXPECT_NEAR(before / error, 16, 2) << N;
        }
        before = error;
    }
    EXPECT_LE(before, 1e-6);
}

// The exponents of ẋ = ax + bx(t − 1) are the real parts of the roots of z = a + b exp(−z). Of a complex pair each
// log|r_ii| is a bounded function along the orbit, whose mean is O(1)/T.
TEST(Delay, ExponentsAreTheCharacteristicRoots) {
    using Complex = std::complex<double>;
    const double a = 0.3, b = -1.2, time = 300;
    std::vector<double> exact;
    for (const Complex start : {Complex(-0.2, 1.4), Complex(-1.8, 7.6), Complex(-2.4, 14)}) {
        Complex z = start;
        for (int k = 0; k < 50; ++k) z -= (z - a - b * std::exp(-z)) / (1. + b * std::exp(-z));
        ASSERT_LE(std::abs(z - a - b * std::exp(-z)), 1e-12);
        exact.insert(exact.end(), 2, z.real());
    }
    Context<Host> ctx;
    const auto system = tangent_map(differentiated_delay_flow(
        {1}, [&](const auto* x, const auto* y, auto* d) { d[0] = a * x[0] + b * y[0]; }, 1, 40));
    const LyapunovSpectrum f =
        lyapunov_spectrum(ctx, *system, {.exponents = 6, .time = time, .transient = 0, .alignment = 30});
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(f.exponents[i].value, exact[i], 3 / time) << i;
    for (std::size_t i = 0; i < 6; i += 2) EXPECT_GT(exact[i], i + 2 < 6 ? exact[i + 2] : -10);
}

// Kaplan-Yorke dimensions of Mackey-Glass: 2.10 ± 0.02 at τ = 17 and 3.58 ± 0.04 at τ = 30 (Farmer 1982).
TEST(Delay, MackeyGlassHasFarmersDimensions) {
    Context<Host> ctx;
    struct Published {
        double tau, dimension, error;
    };
    for (const Published& p : {Published{17, 2.10, 0.02}, Published{30, 3.58, 0.04}}) {
        const auto system = tangent_map(MackeyGlass{.tau = p.tau, .intervals = 30});
        const LyapunovSpectrum f = lyapunov_spectrum(
            ctx, *system, {.exponents = 5, .time = 20000, .transient = 1000, .alignment = 1000, .steps_per_qr = 15});
        EXPECT_NEAR(f.kaplan_yorke.value, p.dimension, 2 * p.error + f.kaplan_yorke.half_width) << p.tau;
        EXPECT_LE(f.kaplan_yorke.half_width, 0.2) << p.tau;
    }
    EXPECT_NE(message_of([] { tangent_map(MackeyGlass{.intervals = 2}); }).find("at least 3"), std::string::npos);
}

// ---- estimates ------------------------------------------------------------------------------------------------------

/// Segments are independent, or have correlations φᵗ: then the mean of N has the variance σ²(1 + φ)/(1 − φ)/N. 64
/// batches know it to √(6/64) = 31% (a third of them determines θ), and 60 runs to 4%, its root to half of that.
TEST(Estimates, StandardErrorsKnowCorrelations) {
    for (const double phi : {0.9, 0., -0.6}) {
        if (quick() && phi != 0.9) continue;
        std::normal_distribution<double> normal;
        const Index N = Index(1) << 15;  // 32 groups of 4 batches of 256, and none is left over
        const int runs = 60;
        const double expected = 1 / (1 - phi) / std::sqrt(static_cast<double>(N));
        double squares = 0;
        for (int run = 0; run < runs; ++run) {
            std::mt19937_64 engine(static_cast<std::uint64_t>(run));
            BatchSums sums(1);
            double x = 0;
            for (Index k = 0; k < N; ++k) {
                x = phi * x + normal(engine);
                sums.add(std::vector<double>{1 + x});
            }
            LyapunovSpectrum f;
            f.dimension = 1;
            estimate(sums, 1, false, f);
            squares += f.exponents[0].error * f.exponents[0].error / runs;
            EXPECT_LE(std::abs(f.exponents[0].value - 1), 5 * expected);
            EXPECT_NEAR(f.sum.error, f.exponents[0].error, 1e-12);
            EXPECT_EQ(f.segments, N);
        }
        EXPECT_NEAR(std::sqrt(squares) / expected, 1, 0.08) << phi;
    }
}

// Shares of intervals that hold the truth, of 1000 series: 92% to 98%, within 3.5 standard deviations of a binomial
// share. Independent segments, such with correlations, and differences of a bounded function, whose mean of N has
// errors O(1/N).
TEST(Estimates, IntervalsHoldTheTruth) {
    const int runs = quick() ? 100 : 1000;
    const double sigma = std::sqrt(0.05 * 0.95 / runs);
    for (const double phi : {0., 0.5, 1.}) {
        std::mt19937_64 engine(7);
        std::normal_distribution<double> normal;
        int covered = 0;
        for (int run = 0; run < runs; ++run) {
            BatchSums sums(1);
            double x = 0, before = normal(engine);
            for (Index k = 0; k < 300; ++k) {
                const double e = normal(engine);
                x = phi == 1 ? e - before : phi * x + e;
                before = e;
                sums.add(std::vector<double>{x});
            }
            LyapunovSpectrum f;
            f.dimension = 1;
            estimate(sums, 1, false, f);
            covered += std::abs(f.exponents[0].value) <= f.exponents[0].half_width;
        }
        const double share = static_cast<double>(covered) / runs;
        EXPECT_GE(share, 0.92 - 3.5 * sigma) << phi;
        EXPECT_LE(share, 0.98 + 3.5 * sigma) << phi;
    }
}

// Runs with many seeds. The exponents of Lorenz are 0.9056 and −14.5721 (Sprott 2003, and 100 runs over
// 10 000).
TEST(Estimates, IntervalsHoldExponents) {
    Context<Host> ctx(1);
    const int runs = quick() ? 20 : 100;
    const double least = 0.92 - 3.5 * std::sqrt(0.05 * 0.95 / runs);
    const auto share = [&](TangentMap<>& system, LyapunovOptions options, std::size_t i, double truth) {
        int covered = 0;
        for (int seed = 1; seed <= runs; ++seed) {
            options.seed = static_cast<std::uint64_t>(seed);
            const Estimate found = lyapunov_spectrum(ctx, system, options).exponents[i];
            covered += std::abs(found.value - truth) <= found.half_width;
        }
        return static_cast<double>(covered) / runs;
    };
    const auto lorenz = tangent_map(Lorenz63{}), henon = tangent_map(Henon{});
    const LyapunovOptions flow{.time = 100, .transient = 20, .alignment = 20},
        map{.time = 1e4, .transient = 100, .alignment = 100};
    EXPECT_GE(share(*lorenz, flow, 0, 0.9056), least);
    EXPECT_GE(share(*lorenz, flow, 1, 0), least);
    EXPECT_GE(share(*henon, map, 0, 0.4192), least);
}

// Intervals of a shorter run.
TEST(Estimates, IntervalsOverTime) {
    std::mt19937_64 engine(3);
    std::normal_distribution<double> normal;
    BatchSums all(2);
    std::vector<LyapunovSpectrum> shorter;
    for (Index k = 1; k <= 200; ++k) {
        all.add(std::vector<double>{2 + normal(engine), normal(engine)});
        if (k % 40 == 0) estimate(all, 0.5, false, shorter.emplace_back());
    }
    const LyapunovSpectrum& f = shorter.back();
    ASSERT_EQ(f.times.size(), 200u);  // nothing is discarded
    for (Index i = 0; i < 2; ++i) {
        for (Index k = 40; k <= 200; k += 40) {
            const double expected =
                shorter[static_cast<std::size_t>(k / 40 - 1)].exponents[static_cast<std::size_t>(i)].half_width;
            EXPECT_NEAR(half_width_after(f, i, k - 1) / expected, 1, 1e-9) << k;
        }
        EXPECT_TRUE(std::isnan(half_width_after(f, i, 14)));
        EXPECT_FALSE(std::isnan(half_width_after(f, i, 15)));
    }
}

// Exponents 0, known to O(1/T), and −0.05, known to 0.05: in every sixth run the second one is estimated above the
// first.
TEST(Estimates, IntervalsHoldWhereExponentsChangePlaces) {
    constexpr int runs = 200;
    int first = 0, second = 0;
    for (int run = 0; run < runs; ++run) {
        std::mt19937_64 engine(static_cast<std::uint64_t>(run));
        std::normal_distribution<double> normal;
        BatchSums sums(2);
        double before = normal(engine);
        for (Index k = 0; k < 400; ++k) {
            const double now = normal(engine);
            sums.add(std::vector<double>{now - std::exchange(before, now), -0.05 + normal(engine)});
        }
        LyapunovSpectrum f;
        f.dimension = 2;
        estimate(sums, 1, false, f);
        first += std::abs(f.exponents[0].value) <= f.exponents[0].half_width;
        second += std::abs(f.exponents[1].value + 0.05) <= f.exponents[1].half_width;
    }
    // 95% less three deviations of a binomial count; 84% without regard to the order
    EXPECT_GE(first, 0.90 * runs);
    EXPECT_GE(second, 0.90 * runs);
}

// A start that differs is found and left out, and nothing of a stationary series.
TEST(Estimates, TransientsAreFound) {
    int cut = 0;
    for (int run = 0; run < 50; ++run) {
        std::mt19937_64 engine(static_cast<std::uint64_t>(run));
        std::normal_distribution<double> normal;
        BatchSums stationary(3), starting(3);
        for (Index k = 0; k < 1000; ++k) {
            std::vector<double> y{normal(engine), normal(engine), 1 + 0.1 * normal(engine)};
            stationary.add(y);
            for (double& value : y) value += 10 * std::exp(-static_cast<double>(k) / 20);
            starting.add(y);
        }
        LyapunovSpectrum f, g;
        f.dimension = g.dimension = 3;
        estimate(stationary, 1, false, f);
        estimate(starting, 1, false, g);
        cut += f.discarded > 0;
        EXPECT_GE(g.discarded, 40);
        EXPECT_LE(g.discarded, 200);
        EXPECT_NEAR(g.exponents[0].value, 1, 0.05);
    }
    EXPECT_LE(cut, 1);  // once in e¹⁰ runs
}

TEST(Estimates, BatchesKeepEverySegment) {
    BatchSums sums(2);
    for (Index k = 0; k < 10007; ++k) {
        sums.add(std::vector<double>{1, static_cast<double>(k)});
        ASSERT_EQ(sums.segments(), k + 1);
        ASSERT_EQ(sums.total(),
                  (std::vector<double>{static_cast<double>(k + 1), static_cast<double>(k * (k + 1) / 2)}));
        ASSERT_LT(sums.batches(), 256);
        if (k > 256) {
            ASSERT_GE(sums.batches(), 128);
        }
    }
}

TEST(Estimates, FollowFromTheExponents) {
    const auto of = [](std::vector<double> lambda, Index n) {
        BatchSums sums(static_cast<Index>(lambda.size()));
        for (double& value : lambda) value *= 0.5;
        for (int k = 0; k < 64; ++k) sums.add(lambda);
        LyapunovSpectrum f;
        f.dimension = n;
        estimate(sums, 0.5, false, f);
        return f;
    };
    const LyapunovSpectrum f = of({-1.5, 0.5, 0.25, -2}, 4);  // sorted: 0.5, 0.25, −1.5, −2
    EXPECT_EQ(f.exponents[0].value, 0.5);
    EXPECT_EQ(f.exponents[3].value, -2);
    EXPECT_NEAR(f.exponents[2].error, 0, 1e-15);
    EXPECT_EQ(f.kaplan_yorke.value, 2.5);
    EXPECT_EQ(f.kolmogorov_sinai.value, 0.75);
    EXPECT_EQ(f.sum.value, -2.75);
    EXPECT_EQ(f.positive, 2);
    EXPECT_EQ(f.averages(0, f.averages.cols() - 1), 0.5);
    EXPECT_EQ(of({-1, -2}, 2).kaplan_yorke.value, 0);
    EXPECT_EQ(of({1, -1}, 2).kaplan_yorke.value, 2);
    EXPECT_TRUE(std::isnan(of({1, -0.5}, 9).kaplan_yorke.value));
    EXPECT_EQ(of({1, -0.5}, 9).kolmogorov_sinai.value, 1);
    EXPECT_TRUE(std::isnan(of({1, 0.5}, 9).kolmogorov_sinai.value));
    const LyapunovSpectrum singular = of({1, -std::numeric_limits<double>::infinity()}, 2);
    EXPECT_EQ(singular.kaplan_yorke.value, 1);
    EXPECT_TRUE(std::isnan(singular.exponents[1].half_width));
}

// ---- Jacobians by dual numbers --------------------------------------------------------------------------------------

// (f(x + εv) − f(x − εv))/2ε = Df(x) v + O(ε²) + O(u/ε), ε = 1e-6 and derivatives of order 10.
TEST(Dual, HasTheDerivatives) {
    const auto f = [](const auto* x, auto* y) {
        using std::abs, std::atan, std::cos, std::cosh, std::exp, std::log, std::pow, std::sin, std::sinh, std::sqrt,
            std::tan, std::tanh;
        y[0] = x[0] * x[1] - 3 / x[0] + 2;
        y[1] = (x[0] - x[1]) / (1 + pow(x[1], 2)) + sqrt(x[0]);
        y[2] = sin(x[0]) * cos(x[1]) + tan(x[0]) + exp(-x[0]) + log(x[1]) + tanh(x[0] * x[1]);
        y[0] += atan(x[1]) + sinh(x[0]);
        y[1] -= cosh(x[1]);
        y[1] *= x[0];
        y[2] /= abs(-x[1]);
        y[2] = x[0] < x[1] ? y[2] : y[0];
    };
    const std::vector<double> x{0.7, 1.3, 5};
    const Index p = 11;  // a block of eight directions, and a part of one
    const Matrix<double> V = random_normal<double>(3, p, 3);
    Matrix<double> Y(3, p);
    differentiated_map(x, f).jvp(x.data(), V.view(), Y.view());
    for (Index j = 0; j < p; ++j) {
        double forth[3], back[3], above[3], below[3];
        for (Index i = 0; i < 3; ++i) {
            forth[i] = x[static_cast<std::size_t>(i)] + 1e-6 * V(i, j);
            back[i] = x[static_cast<std::size_t>(i)] - 1e-6 * V(i, j);
        }
        f(static_cast<const double*>(forth), above);
        f(static_cast<const double*>(back), below);
        for (Index i = 0; i < 3; ++i) EXPECT_NEAR(Y(i, j), (above[i] - below[i]) / 2e-6, 1e-7);
    }
}

// The vectors of the flow above, whose Jacobian is written down, up to rounding that the flow takes apart for 10 time
// units.
TEST(Dual, GivesTheSpectrum) {
    Context<Host> ctx;
    const LyapunovOptions options{.time = 10, .transient = 0, .alignment = 2};
    const auto own = tangent_map(differentiated_flow(
        {1, 1, 0},
        [](const auto* x, auto* d) {
            d[0] = -x[1] - x[2];
            d[1] = x[0] + 0.2 * x[1];
            d[2] = 0.2 + x[2] * (x[0] - 5.7);
        },
        0.02));
    const LyapunovSpectrum f = lyapunov_spectrum(ctx, *own, options), g = lyapunov_spectrum(ctx, *roessler(1), options);
    EXPECT_EQ(f.state, g.state);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(f.exponents[i].value, g.exponents[i].value, 1e-11);
}

// ---- spectra that are known -----------------------------------------------------------------------------------------

void expect_exponent(const LyapunovSpectrum& f, std::size_t i, double known, double error_of_known,
                     double largest_error) {
    EXPECT_LE(std::abs(f.exponents[i].value - known), error_of_known + 4 * f.exponents[i].error) << "exponent " << i;
    EXPECT_LE(f.exponents[i].error, largest_error) << "exponent " << i;
}

TEST(KnownSpectrum, Lorenz63) {  // Sprott 2003
    Context<Host> ctx;
    const auto f = lyapunov_spectrum(ctx, *tangent_map(Lorenz63{}), {.time = quick() ? 400. : 4000.});
    const double most = quick() ? 0.03 : 0.005;
    expect_exponent(f, 0, 0.9056, 1e-4, most);
    expect_exponent(f, 1, 0, 3 / f.time, most);
    expect_exponent(f, 2, -14.5723, 1e-4, most);
    EXPECT_NEAR(f.sum.value, -41. / 3, 1e-4);
    EXPECT_NEAR(f.kaplan_yorke.value, 2.062, 0.003);
    EXPECT_EQ(f.positive, 1);
}

TEST(KnownSpectrum, Henon) {
    Context<Host> ctx;
    const auto f = lyapunov_spectrum(ctx, *tangent_map(Henon{}), {.time = quick() ? 1e5 : 1e6});
    expect_exponent(f, 0, 0.4192, 1e-4, quick() ? 0.003 : 0.001);
    expect_exponent(f, 1, -1.6232, 1e-4, quick() ? 0.003 : 0.001);
    // ten steps draw the vectors apart by e^{10(λ₁ − λ₂)}, which is the condition that r₂₂ is computed with
    EXPECT_NEAR(f.sum.value, std::log(0.3), law * 2 * u * std::exp(10 * (0.42 + 1.62)) / 10);
}

TEST(KnownSpectrum, CallersSystems) {
    Context<Host> ctx;
    const auto logistic_map = lyapunov_spectrum(ctx, *logistic(1), {.time = 2e4});
    expect_exponent(logistic_map, 0, std::log(2.), 0, 0.01);
    const auto roessler_flow = lyapunov_spectrum(ctx, *roessler(1), {.time = quick() ? 500. : 3000.});
    expect_exponent(roessler_flow, 0, 0.0714, 0.0005, quick() ? 0.03 : 0.01);  // Sprott 2003
    expect_exponent(roessler_flow, 2, -5.394, 0.001, quick() ? 0.2 : 0.05);
}

/// Every interval holds the known exponent, and is not wider than a few times `error` of it and `rounding`.
void expect_regular(const LyapunovSpectrum& f, const std::vector<double>& known, const std::vector<double>& error,
                    double rounding) {
    double sum = 0, error_of_sum = 0;
    for (std::size_t i = 0; i < known.size(); ++i) {
        const Estimate& e = f.exponents[i];
        EXPECT_LE(std::abs(e.value - known[i]), e.half_width) << "exponent " << i << " of " << known[i];
        EXPECT_LE(e.half_width, 3 * error[i] + rounding) << "exponent " << i;
        sum += known[i], error_of_sum += error[i];
    }
    EXPECT_LE(std::abs(f.sum.value - sum), f.sum.half_width);
    EXPECT_LE(f.sum.half_width, 3 * error_of_sum + 3 * rounding);
    EXPECT_TRUE(f.resolved);
}

/// Returns the exponent of ẋ = λx by steps h of Dormand and Prince: log|R(λh)|/h, R(z) = 1 + z + … + z⁵/5! + z⁶/600.
double dormand_prince_exponent(double lambda, double h) {
    const double z = lambda * h;
    return std::log1p(z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4 * (1 + z / 5 * (1 + z / 5)))))) / h;
}

// An exponent that does not scatter still has the errors of its step and of rounding.
TEST(KnownSpectrum, FixedPointsHaveTheErrorsOfTheirStep) {
    Context<Host> ctx;
    // Lorenz's origin for ρ < 1: −β, and the roots of λ² + (σ + 1)λ + σ(1 − ρ)
    const double root = std::sqrt(121 - 40 * 0.5);
    const std::vector<double> lambda{(-11 + root) / 2, -8. / 3, (-11 - root) / 2};
    for (const double step : {0.01, 0.05}) {
        const auto f = lyapunov_spectrum(ctx, *tangent_map(Lorenz63{.rho = 0.5, .step = step}),
                                         {.time = 200, .transient = 60, .alignment = 30});
        std::vector<double> error;
        for (const double l : lambda) error.push_back(std::abs(dormand_prince_exponent(l, step) - l));
        expect_regular(f, lambda, error, 1e-11);
        EXPECT_NEAR(f.exponents[2].value, dormand_prince_exponent(lambda[2], step), 1e-10);
    }
    // Hénon's x = (b − 1 + √((1 − b)² + 4a))/2a: log|−ax ± √(a²x² + b)|
    const double a = 0.2, b = 0.3, x = (b - 1 + std::sqrt((1 - b) * (1 - b) + 4 * a)) / (2 * a);
    const double half = std::sqrt(a * a * x * x + b);
    const auto henon = lyapunov_spectrum(ctx, *tangent_map(Henon{.a = a, .b = b}), {.time = 1e5});
    expect_regular(henon, {std::log(half + a * x), std::log(half - a * x)}, {0, 0}, 1e-12);
}

// Vectors turn, or grow with the phase: log|r_ii| is a difference along the orbit, and its correlations never end.
TEST(KnownSpectrum, CyclesHaveTheErrorsOfTheirStep) {
    Context<Host> ctx;
    const auto focus = lyapunov_spectrum(ctx, *tangent_map(Lorenz63{.rho = 10}), {.time = 4000});
    EXPECT_TRUE(focus.resolved);
    EXPECT_LE(std::abs(focus.sum.value + 41. / 3), focus.sum.half_width);
    EXPECT_LE(focus.sum.half_width, 1e-6);
    const LyapunovOptions times{.time = 300, .transient = 100, .alignment = 100};
    // a damped oscillator, ẍ = −0.2ẋ − x, and r' = r(1 − r²), φ' = 1
    const auto oscillator = tangent_map(differentiated_flow(
        {1, 0}, [](const auto* x, auto* d) { d[0] = x[1], d[1] = -x[0] - 0.2 * x[1]; }, 0.1));
    expect_regular(lyapunov_spectrum(ctx, *oscillator, times), {-0.1, -0.1}, {1e-3, 1e-3}, 0);
    const auto cycle = tangent_map(differentiated_flow(
        {1, 0.5},
        [](const auto* x, auto* d) {
            const auto r = x[0] * x[0] + x[1] * x[1];
            d[0] = x[0] * (1 - r) - x[1], d[1] = x[1] * (1 - r) + x[0];
        },
        0.1));
    const auto f = lyapunov_spectrum(ctx, *cycle, times);
    const double error = std::abs(f.exponents[1].value + 2);
    EXPECT_GT(error, 1e-9);
    expect_regular(f, {0, -2}, {error, 2 * error}, 0);
}

// Chaos, of which only the sum is known exactly, −(σ + 1 + β). A step moves it, by 0.003 for 0.05.
TEST(Sum, IntervalsHoldTheDivergence) {
    Context<Host> ctx;
    for (const double step : {0.01, 0.02, 0.05}) {
        const auto f = lyapunov_spectrum(ctx, *tangent_map(Lorenz63{.step = step}), {.time = 500});
        const double error = std::abs(f.sum.value + 41. / 3);
        EXPECT_LE(error, f.sum.half_width) << step;
        EXPECT_LE(f.sum.half_width, 10 * error) << step;
    }
}

TEST(KnownSpectrum, Lorenz96) {
    Context<Host> ctx;
    const auto f = lyapunov_spectrum(ctx, *tangent_map(Lorenz96{}),
                                     {.time = quick() ? 50. : 500., .alignment = 20, .steps_per_qr = 5});
    expect_exponent(f, 0, 1.68, 0.02, quick() ? 0.3 : 0.1);
    EXPECT_LE(std::abs(f.kaplan_yorke.value - 27.1), 0.1 + 4 * f.kaplan_yorke.error);
    EXPECT_LE(f.kaplan_yorke.error, quick() ? 0.6 : 0.15);
    EXPECT_NEAR(f.sum.value, -40, 1e-4);
    EXPECT_GT(f.exponents[11].value, 0);
    EXPECT_LT(f.exponents[14].value, 0);
}

TEST(KnownSpectrum, KuramotoSivashinsky) {  // Cvitanović, Davidchack and Siminos 2010
    const double known[] = {0.048, 0, 0, -0.003, -0.189, -0.256, -0.290, -0.310, -1.963, -1.967, -5.605, -5.605};
    Context<Host> ctx;
    const auto f =
        lyapunov_spectrum(ctx, *tangent_map(KuramotoSivashinsky{}),
                          {.exponents = 12, .time = quick() ? 500. : 10000., .alignment = 200, .steps_per_qr = 5});
    for (std::size_t i = 0; i < 12; ++i) {
        expect_exponent(f, i, known[i], std::max(0.003, 0.03 * std::abs(known[i])), quick() ? 0.03 : 0.005);
    }
    EXPECT_EQ(f.vanishing, 2);
}

// ---- refusals -------------------------------------------------------------------------------------------------------

TEST(Refusals, NameTheParameter) {
    const auto expect_named = [](auto&& make, const char* name) {
        const std::string message = message_of(make);
        EXPECT_NE(message.find(name), std::string::npos) << message;
        EXPECT_EQ(message.find("of another class"), std::string::npos) << message;
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    expect_named([] { tangent_map(Lorenz63{.step = 0}); }, "step");
    expect_named([&] { tangent_map(Lorenz63{.step = nan}); }, "step");
    expect_named([&] { tangent_map(Lorenz63{.sigma = nan}); }, "sigma must");
    expect_named([&] { tangent_map(Lorenz63{.rho = nan}); }, "rho must");
    expect_named([&] { tangent_map(Lorenz63{.beta = nan}); }, "beta must");
    expect_named([&] { tangent_map(Henon{.a = nan}); }, "a must");
    expect_named([&] { tangent_map(Henon{.b = nan}); }, "b must");
    expect_named([&] { tangent_map(Lorenz96{.forcing = nan}); }, "forcing must");
    expect_named([&] { tangent_map(Lorenz96{.step = nan}); }, "step must");
    expect_named([&] { tangent_map(KuramotoSivashinsky{.step = nan}); }, "step must");
    expect_named([&] { tangent_map(FputBeta{.beta = nan}); }, "beta must");
    expect_named([&] { tangent_map(FputBeta{.energy = nan}); }, "energy must");
    expect_named([&] { tangent_map(FputBeta{.step = nan}); }, "step must");
    expect_named([&] { tangent_map(Particles{.density = nan}); }, "density must");
    expect_named([&] { tangent_map(Particles{.temperature = nan}); }, "temperature must");
    expect_named([&] { tangent_map(Particles{.kappa = nan}); }, "kappa must");
    expect_named([&] { tangent_map(Particles{.cutoff = nan}); }, "cutoff must");
    expect_named([&] { tangent_map(Particles{.step = nan}); }, "step must");
    expect_named([] { tangent_map(Lorenz96{.size = 3}); }, "at least 4");
    expect_named([] { tangent_map(KuramotoSivashinsky{.length = -1}); }, "length");
    expect_named([] { tangent_map(KuramotoSivashinsky{.length = 1e9}); }, "million");
    expect_named([] { tangent_map(FputBeta{.size = 0}); }, "size");
    expect_named([] { tangent_map(FputBeta{.beta = -1}); }, "beta");
    expect_named([] { tangent_map(Particles{.count = 1}); }, "particles");
    expect_named([] { tangent_map(Particles{.dimensions = 4}); }, "2 or 3");
    expect_named([] { tangent_map(Particles{.count = 5, .density = 1}); }, "twice the cutoff");
    expect_named([] { tangent_map(Particles{.count = 1000, .density = 3}); }, "overlap");
    expect_named([] { tangent_map(Particles{.cutoff = 2}); }, "cutoff");
    expect_named([] { tangent_map(UserFlow{{}, {}, {}}); }, "x0");
    expect_named([] { tangent_map(UserMap{{1}, [](const double*, double*) {}, {}}); }, "jvp");

    Context<Host> ctx;
    const auto lorenz = tangent_map(Lorenz63{});
    const auto run = [&](LyapunovOptions options) {
        return [&, options] { lyapunov_spectrum(ctx, *lorenz, options); };
    };
    expect_named(run({.exponents = 4}), "dimension 3");
    expect_named(run({.exponents = -1}), "exponents");
    expect_named(run({.time = 0}), "time");
    expect_named(run({.transient = -1}), "transient");
    expect_named(run({.alignment = nan}), "alignment");
    expect_named(run({.steps_per_qr = 0}), "steps_per_qr");
    expect_named(run({.checkpoint_seconds = 0}), "checkpoint_seconds");
    expect_named(run({.time = 1e300}), "segments");
}

TEST(Refusals, NameTheTimeAtWhichTheOrbitLeavesTheNumbers) {
    Context<Host> ctx;
    const auto henon = tangent_map(Henon{.a = 2});  // its orbits go to infinity
    try {
        lyapunov_spectrum(ctx, *henon, {.time = 100, .transient = 100});
        FAIL();
    } catch (const NonFiniteEntry& e) {
        EXPECT_NE(std::string(e.what()).find("the state at time"), std::string::npos) << e.what();
    }
    const auto nowhere = tangent_map(
        UserMap{{std::numeric_limits<double>::quiet_NaN()},
                [](const double*, double* y) { y[0] = 0; },
                [](const double*, MatrixView<const double> X, MatrixView<double> Y) { Y(0, 0) = X(0, 0); }});
    EXPECT_NE(message_of([&] { lyapunov_spectrum(ctx, *nowhere, {.time = 3}); }).find("the state at time 0 ("),
              std::string::npos);
    // tangent vectors that overflow in a step, on a finite orbit
    const auto growing = tangent_map(UserMap{
        {1},
        [](const double* x, double* y) { y[0] = x[0]; },
        [](const double*, MatrixView<const double> X, MatrixView<double> Y) { Y(0, 0) = 1e200 * (1e200 * X(0, 0)); }});
    try {
        lyapunov_spectrum(ctx, *growing, {.time = 10, .steps_per_qr = 4});
        FAIL();
    } catch (const NonFiniteEntry& e) {
        EXPECT_NE(std::string(e.what()).find("tangent vectors at time"), std::string::npos) << e.what();
    }
}

// ---- steps between two QRs ------------------------------------------------------------------------------------------

std::unique_ptr<TangentMap<>> stretching(double a, double b, std::optional<double> divergence = {}) {
    return tangent_map(UserMap{{1},
                               [](const double* x, double* y) { y[0] = x[0]; },
                               [=](const double*, MatrixView<const double> X, MatrixView<double> Y) {
                                   Y(0, 0) = (X.cols > 1 ? a : b) * X(0, 0);
                               },
                               divergence});
}

// A segment of 400 steps draws Lorenz's vectors apart by e^{62}. It is cut until r_33 has its digits, and the spectrum
// agrees with segments that are short from the start.
TEST(StepsBetweenQrs, AreAsFewAsTheGrowthAsksFor) {
    Context<Host> ctx;
    const auto lorenz = tangent_map(Lorenz63{});
    const auto narrow = with_f32_vectors(tangent_map(Lorenz63{}));
    const LyapunovSpectrum expected =
        lyapunov_spectrum(ctx, *lorenz, {.time = 200, .transient = 20, .alignment = 20, .steps_per_qr = 10});
    EXPECT_EQ(expected.steps_between_qr, 10);
    LyapunovOptions options{.time = 200, .transient = 20, .alignment = 0, .steps_per_qr = 400};
    const auto expect_cut = [&](const LyapunovSpectrum& f, Index least, Index most, double bound) {
        EXPECT_GE(f.steps_between_qr, least);
        EXPECT_LE(f.steps_between_qr, most);
        EXPECT_EQ(f.segments, 50);
        EXPECT_NEAR(f.exponents[2].value, expected.exponents[2].value, bound);
        EXPECT_NEAR(f.sum.value, -41. / 3, 1e-3 + bound);
    };
    // orbits of one initial state, and other frames: O(1)/T apart
    expect_cut(lyapunov_spectrum(ctx, *lorenz, options), 50, 200, 20. / 200);
    expect_cut(lyapunov_spectrum(ctx, *narrow, options), 12, 50, 20. / 200);
    options.qr.method = Method::CholeskyQR2;  // which refuses vectors of condition u^(−1/2)
    expect_cut(lyapunov_spectrum(ctx, *lorenz, options), 25, 100, 20. / 200);

    // 1e200 twice is no number, once it is
    const auto growing = stretching(0, 1e200);
    const LyapunovSpectrum f = lyapunov_spectrum(ctx, *growing, {.time = 10, .steps_per_qr = 2});
    EXPECT_EQ(f.steps_between_qr, 1);
    EXPECT_NEAR(f.exponents[0].value, std::log(1e200), 1e-9);
}

// One step takes two vectors to within 1e-14 of each other.
TEST(StepsBetweenQrs, OneStepMayBeTooLong) {
    Context<Host> ctx;
    const auto shear = tangent_map(UserMap{{1, 1},
                                           [](const double* x, double* y) { y[0] = x[0], y[1] = x[1]; },
                                           [](const double*, MatrixView<const double> X, MatrixView<double> Y) {
                                               for (Index j = 0; j < X.cols; ++j) {
                                                   Y(0, j) = X(0, j) + X(1, j);
                                                   Y(1, j) = X(0, j) + (1 + 1e-14) * X(1, j);
                                               }
                                           }});
    try {
        lyapunov_spectrum(ctx, *shear, {.time = 100, .steps_per_qr = 8});
        FAIL();
    } catch (const NumericalBreakdown& e) {
        EXPECT_NE(std::string(e.what()).find("tangent vector 2 at time"), std::string::npos) << e.what();
    }
}

TEST(Sum, MustBeTheKnownDivergence) {
    Context<Host> ctx;
    const LyapunovOptions options{.time = 100, .transient = 0, .alignment = 0, .steps_per_qr = 1};
    EXPECT_NEAR(lyapunov_spectrum(ctx, *stretching(0, 3, std::log(3.)), options).sum.value, std::log(3.), 1e-12);
    try {
        lyapunov_spectrum(ctx, *stretching(0, 3, std::log(2.9)), options);
        FAIL();
    } catch (const NumericalBreakdown& e) {
        EXPECT_NE(std::string(e.what()).find("1.09861"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("must be 1.06471"), std::string::npos) << e.what();
    }
    // a step of Kuramoto-Sivashinsky's that is too long for the contraction of the last modes
    const auto waves = tangent_map(KuramotoSivashinsky{});
    EXPECT_THROW(lyapunov_spectrum(ctx, *waves, {.time = 50, .transient = 20, .alignment = 5}), NumericalBreakdown);
}

TEST(Until, EndsTheRunWhereErrorsAreSmall) {
    Context<Host> ctx;
    const auto henon = tangent_map(Henon{});
    LyapunovOptions options{.time = 1e6, .until = 0.01, .transient = 100, .alignment = 100};
    const LyapunovSpectrum f = lyapunov_spectrum(ctx, *henon, options);
    EXPECT_TRUE(f.reached && f.completed);
    EXPECT_LT(f.time, 1e5);
    for (const Estimate& exponent : f.exponents) EXPECT_LE(exponent.half_width, 0.01);
    options.until = 0.003;  // √T: about ten times as long
    const LyapunovSpectrum longer = lyapunov_spectrum(ctx, *henon, options);
    EXPECT_GT(longer.time, 4 * f.time);
    EXPECT_LT(longer.time, 30 * f.time);
    options.time = 1000;
    const LyapunovSpectrum shorter = lyapunov_spectrum(ctx, *henon, options);
    EXPECT_FALSE(shorter.reached);
    EXPECT_EQ(shorter.time, 1000);
    options.until = -1;
    EXPECT_THROW(lyapunov_spectrum(ctx, *henon, options), InvalidArgument);
}

TEST(Refusals, ParticlesThatMeetAreNamed) {
    Context<Host> ctx;
    const auto system = tangent_map(Particles{.count = 32});
    std::vector<double> x = system->initial_state(1);
    std::copy_n(x.begin(), 3, x.begin() + 3);
    const std::string message = message_of([&] { system->advance(ctx, 1, x, {}); });
    EXPECT_NE(message.find("particles 0 and 1 overlap"), std::string::npos) << message;
}

TEST(Checkpoint, RefusesAnotherRunAndWhatIsNone) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("quoin-checkpoint-" + std::to_string(getpid()))).string();
    Context<Host> ctx;
    const auto lorenz = tangent_map(Lorenz63{});
    const LyapunovOptions options{.time = 20, .transient = 1, .alignment = 1, .checkpoint = path};
    const LyapunovSpectrum first = lyapunov_spectrum(ctx, *lorenz, options);

    LyapunovOptions other = options;
    other.seed = 2;
    EXPECT_NE(message_of([&] { lyapunov_spectrum(ctx, *lorenz, other); }).find("'seed: 1'"), std::string::npos);
    const auto other_system = tangent_map(Lorenz63{.rho = 27});
    EXPECT_NE(message_of([&] { lyapunov_spectrum(ctx, *other_system, options); }).find("rho=28"), std::string::npos);

    // a finished run, asked for more
    LyapunovOptions longer = options;
    longer.time = 50;
    const LyapunovSpectrum continued = lyapunov_spectrum(ctx, *lorenz, longer);
    longer.checkpoint.clear();
    EXPECT_EQ(continued.state, lyapunov_spectrum(ctx, *lorenz, longer).state);
    EXPECT_EQ(continued.time, 50);
    EXPECT_EQ(lyapunov_spectrum(ctx, *lorenz, options).time, 50) << "asked for less, it has what it has";

    std::ifstream in(path, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{20}, whole.size() / 4, whole.size() / 2, whole.size() - 1}) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
        EXPECT_THROW(lyapunov_spectrum(ctx, *lorenz, options), UnreadableFile) << size;
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole << "x";
    EXPECT_THROW(lyapunov_spectrum(ctx, *lorenz, options), UnreadableFile);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << "something else";
    EXPECT_THROW(lyapunov_spectrum(ctx, *lorenz, options), UnreadableFile);
    std::filesystem::remove(path);

    LyapunovOptions nowhere = options;
    nowhere.checkpoint = "/nonexistent/folder/run";
    EXPECT_THROW(lyapunov_spectrum(ctx, *lorenz, nowhere), UnwritableFile);
}

// An exception of a callback ends the run, and the checkpoint has all segments until then.
TEST(Checkpoint, IsSavedWhereTheCallerThrows) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("quoin-thrown-" + std::to_string(getpid()))).string();
    Context<Host> ctx;
    const auto lorenz = tangent_map(Lorenz63{});
    LyapunovOptions options{.time = 20, .transient = 1, .alignment = 1, .checkpoint = path};
    options.on_segment = [](const LyapunovProgress& progress) -> bool {
        if (progress.time > 10) throw std::runtime_error("mine");
        return true;
    };
    EXPECT_THROW(lyapunov_spectrum(ctx, *lorenz, options), std::runtime_error);
    double first = 0;
    options.on_segment = [&](const LyapunovProgress& progress) {
        first = progress.time;
        return false;
    };
    EXPECT_FALSE(lyapunov_spectrum(ctx, *lorenz, options).completed);
    EXPECT_NEAR(first, 10.2, 1e-9);
    ctx.request_stop();
    options.on_segment = nullptr;
    EXPECT_THROW(lyapunov_spectrum(ctx, *lorenz, options), Interrupted);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace quoin::test
