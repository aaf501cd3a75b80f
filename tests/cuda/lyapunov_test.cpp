// Systems on the GPU are the host's maps, and their spectra obey the same laws.

#include "quoin/apps/lyapunov.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>

#include "gallery.hpp"
#include "gpu.hpp"

namespace quoin::test {
namespace {

/// A system on both devices.
struct Twins {
    std::string name;
    std::unique_ptr<TangentMap<>> host;
    std::unique_ptr<TangentMap<float, Cuda>> f32;
    std::unique_ptr<TangentMap<double, Cuda>> f64;

    template <class T>
    TangentMap<T, Cuda>& gpu() {
        if constexpr (std::is_same_v<T, float>) {
            return *f32;
        } else {
            return *f64;
        }
    }
};

template <class Parameters>
Twins twins(Context<Cuda>& ctx, const char* name, const Parameters& s) {
    return {name, tangent_map(s), tangent_map<float>(ctx, s), tangent_map<double>(ctx, s)};
}

Particles soft(Index count, int dimensions) {
    return {.count = count, .dimensions = dimensions, .potential = Potential::Soft, .density = 0.6, .step = 0.005};
}

std::vector<Twins> every_system(Context<Cuda>& ctx) {
    std::vector<Twins> all;
    all.push_back(twins(ctx, "lorenz63", Lorenz63{}));
    all.push_back(twins(ctx, "henon", Henon{}));
    all.push_back(twins(ctx, "lorenz96", Lorenz96{.size = 37}));
    all.push_back(twins(ctx, "lorenz96 of four", Lorenz96{.size = 4}));
    all.push_back(twins(ctx, "lorenz96 of 300", Lorenz96{.size = 300}));
    all.push_back(twins(ctx, "waves", KuramotoSivashinsky{.modes = 11, .step = 0.01}));
    all.push_back(twins(ctx, "one wave", KuramotoSivashinsky{.modes = 1}));
    all.push_back(twins(ctx, "37 waves", KuramotoSivashinsky{.length = 80, .modes = 37, .step = 0.01}));
    all.push_back(twins(ctx, "fput", FputBeta{.size = 19}));
    all.push_back(twins(ctx, "fput of one", FputBeta{.size = 1}));
    all.push_back(twins(ctx, "fput ring", FputBeta{.size = 12, .periodic = true}));
    all.push_back(twins(ctx, "wca 2d", Particles{.count = 13, .dimensions = 2}));
    all.push_back(twins(ctx, "wca 3d", Particles{.count = 70, .density = 0.8}));
    all.push_back(
        twins(ctx, "lennard-jones", Particles{.count = 100, .potential = Potential::LennardJones, .density = 0.7}));
    all.push_back(twins(
        ctx, "yukawa 2d",
        Particles{
            .count = 40, .dimensions = 2, .potential = Potential::Yukawa, .density = 0.1, .kappa = 2, .step = 0.01}));
    all.push_back(twins(ctx, "soft 3d", soft(40, 3)));
    // more particles than threads of a block
    all.push_back(twins(ctx, "soft 2d", soft(1100, 2)));
    return all;
}

template <class T>
class GpuLyapunov : public OnGpu {
protected:
    Matrix<double, Cuda> to_gpu(const std::vector<double>& x) {
        return copy_to_device<double>(gpu(), MatrixView<const double>(x.data(), static_cast<Index>(x.size()), 1));
    }
    std::vector<double> from_gpu(const Matrix<double, Cuda>& x) {
        const Matrix<double> there = copy_to_host<double>(gpu(), x.view());
        return {there.data(), there.data() + there.rows()};
    }
    static std::span<double> span(Matrix<double, Cuda>& x) { return {x.data(), static_cast<std::size_t>(x.rows())}; }

    /// A state on its way.
    std::vector<double> state(TangentMap<>& system, Index steps = 300) {
        std::vector<double> x = system.initial_state(3);
        system.advance(host, steps, x, {});
        return x;
    }

    /// x and X after `steps` on the host, and what a unit in the last place of every number at the start, of X in T,
    /// makes of them.
    struct Reference {
        std::vector<double> x;
        Matrix<double> X;
        double state_change = 0, vector_change = 0;
    };
    Reference reference(TangentMap<>& system, Index steps, const std::vector<double>& x0, MatrixView<const T> V) {
        std::mt19937_64 engine(9);
        Reference r;
        const auto advance = [&](double u_x, double u_X, std::vector<double>& x, Matrix<double>& X) {
            const auto rounded = [&](double value, double u) { return value * (1 + (engine() % 2 ? u : -u)); };
            x = x0;
            for (double& value : x) value = rounded(value, u_x);
            X = Matrix<double>(V.rows, V.cols);
            for (Index j = 0; j < V.cols; ++j) {
                for (Index i = 0; i < V.rows; ++i) X(i, j) = rounded(static_cast<double>(V(i, j)), u_X);
            }
            system.advance(host, steps, x, X.view());
        };
        advance(0, 0, r.x, r.X);
        for (int repeat = 0; repeat < 3; ++repeat) {
            std::vector<double> x;
            Matrix<double> X;
            advance(2 * unit_roundoff<double>, 2 * unit_roundoff<T>, x, X);
            r.state_change = std::max(r.state_change, largest_difference(x, r.x));
            r.vector_change = std::max(r.vector_change, largest_difference<double>(X.view(), r.X.view()));
        }
        return r;
    }

    static double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
        double largest = 0;
        for (std::size_t i = 0; i < a.size(); ++i) keep_larger(largest, std::abs(a[i] - b[i]));
        return largest;
    }
    template <class S>
    static double largest_difference(MatrixView<const S> A, MatrixView<const double> B) {
        double largest = 0;
        for (Index j = 0; j < A.cols; ++j) {
            for (Index i = 0; i < A.rows; ++i) keep_larger(largest, std::abs(static_cast<double>(A(i, j)) - B(i, j)));
        }
        return largest;
    }
    /// NaN is larger than any.
    static void keep_larger(double& largest, double value) {
        if (!(value <= largest)) largest = value;
    }

    /// The GPU's map against the host's. A step rounds a number of the state or of a vector a few times, as the
    /// roundings at the start do once, and what comes after is the same: `law` of their changes, as roundings that are
    /// random add up.
    void expect_the_hosts_map(Twins& system, const std::vector<double>& x0, Index steps, Index p) {
        SCOPED_TRACE(system.name + ", steps: " + std::to_string(steps));
        const Matrix<T> V = random_normal<T>(system.host->dimension(), p, 5);
        const Reference expected = reference(*system.host, steps, x0, V.view());
        Matrix<double, Cuda> x = to_gpu(x0);
        GpuPadded<T> X(gpu(), V.view());
        system.template gpu<T>().advance(gpu(), steps, span(x), X.view());
        const double growth = law * std::sqrt(static_cast<double>(steps));
        EXPECT_LE(largest_difference(from_gpu(x), expected.x), growth * expected.state_change);
        EXPECT_LE(largest_difference<T>(X.fetch(gpu()).view(), expected.X.view()), growth * expected.vector_change);
    }

    /// x and V after `parts` of steps.
    std::pair<std::vector<double>, Matrix<T>> ends(TangentMap<T, Cuda>& map, const std::vector<double>& x0,
                                                   MatrixView<const T> V, const std::vector<Index>& parts) {
        Matrix<double, Cuda> x = to_gpu(x0);
        Matrix<T, Cuda> X = copy_to_device<T>(gpu(), V);
        for (const Index steps : parts) map.advance(gpu(), steps, span(x), X.view());
        return {from_gpu(x), copy_to_host<T>(gpu(), X.view())};
    }

    LyapunovSpectrum spectrum(TangentMap<T, Cuda>& system, const LyapunovOptions& options) {
        return lyapunov_spectrum(gpu(), system, options);
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GpuLyapunov, Precisions);

TYPED_TEST(GpuLyapunov, StepsAreTheHosts) {
    for (Twins& system : every_system(this->gpu())) {
        const std::vector<double> x = this->state(*system.host);
        // one, a whole list of steps, and a part of the next
        for (const Index steps : {1, 16, 19}) this->expect_the_hosts_map(system, x, steps, 11);
        this->expect_the_hosts_map(system, x, 3, 1);
    }
}

// Columns that do not fit into shared memory stay where they are.
TYPED_TEST(GpuLyapunov, LongColumnsToo) {
    Twins chain = twins(this->gpu(), "a long chain", FputBeta{.size = 9001});
    this->expect_the_hosts_map(chain, this->state(*chain.host, 30), 5, 7);
    Twins ring = twins(this->gpu(), "a long ring", Lorenz96{.size = 3001});
    this->expect_the_hosts_map(ring, this->state(*ring.host, 30), 5, 7);
    Twins fluid = twins(this->gpu(), "many particles", soft(4000, 2));
    this->expect_the_hosts_map(fluid, this->state(*fluid.host, 30), 2, 5);
    Twins waves = twins(this->gpu(), "1024 waves", KuramotoSivashinsky{.length = 1400, .modes = 1024});
    this->expect_the_hosts_map(waves, this->state(*waves.host, 5), 1, 7);
}

// More vectors than are transformed at once; each has the bits that it has without those before it.
TYPED_TEST(GpuLyapunov, BlocksOfWavesToo) {
    using T = TypeParam;
    Twins waves = twins(this->gpu(), "300 waves", KuramotoSivashinsky{.length = 600, .modes = 300});
    const std::vector<double> x = this->state(*waves.host, 30);
    const Index n = waves.host->dimension(), p = 311;
    this->expect_the_hosts_map(waves, x, 2, p);
    const Matrix<T> V = random_normal<T>(n, p, 6);
    const auto whole = this->ends(waves.template gpu<T>(), x, V.view(), {5});
    const auto last = this->ends(waves.template gpu<T>(), x, V.view().col_block({290, p}), {5});
    EXPECT_EQ(whole.first, last.first);
    EXPECT_TRUE(same_bits<T>(whole.second.view().col_block({290, p}), last.second.view()));
}

// A crowd has more neighbours than the density makes expect: the lists grow, and nothing else changes.
TYPED_TEST(GpuLyapunov, CrowdsToo) {
    Twins system = twins(this->gpu(), "a crowd",
                         Particles{.count = 60, .potential = Potential::Soft, .density = 0.05, .step = 0.001});
    std::vector<double> x = system.host->initial_state(1);
    const std::size_t d = 3, N = 60;
    for (std::size_t i = 0; i < d * N; ++i) x[i] = 5 + x[i] / 40;
    this->expect_the_hosts_map(system, x, 4, 9);
    this->expect_the_hosts_map(system, x, 4, 9);
}

TYPED_TEST(GpuLyapunov, BitsDependOnNothingElse) {
    using T = TypeParam;
    for (Twins& system : every_system(this->gpu())) {
        SCOPED_TRACE(system.name);
        const std::vector<double> x0 = this->state(*system.host);
        const Index n = system.host->dimension(), p = 9;
        const Matrix<T> V = random_normal<T>(n, p, 6);
        const auto run = [&](std::vector<Index> parts, Range columns) {
            return this->ends(system.template gpu<T>(), x0, V.view().col_block(columns), parts);
        };
        const auto whole = run({20}, {0, p});
        const auto again = run({20}, {0, p}), in_parts = run({1, 16, 3}, {0, p}), last = run({20}, {5, p}),
                   alone = run({20}, {0, 0});
        EXPECT_EQ(whole.first, again.first);
        EXPECT_EQ(whole.first, in_parts.first);
        EXPECT_EQ(whole.first, alone.first) << "tangent vectors change the orbit";
        EXPECT_TRUE(same_bits<T>(whole.second.view(), again.second.view()));
        EXPECT_TRUE(same_bits<T>(whole.second.view(), in_parts.second.view()));
        EXPECT_TRUE(same_bits<T>(whole.second.view().col_block({5, p}), last.second.view()));
    }
}

// As on the host: (Φ(x + εv) − Φ(x − εv))/2ε = DΦ(x)v + O(ε²) + O(u/ε), of the GPU's own Φ.
TYPED_TEST(GpuLyapunov, TangentVectorsAreDerivatives) {
    using T = TypeParam;
    const Index p = 3;
    for (Twins& system : every_system(this->gpu())) {
        SCOPED_TRACE(system.name);
        const Index steps = system.host->step() == 1 ? 2 : 19;  // a map stretches by 4 at once
        const std::vector<double> x = this->state(*system.host);
        const Index n = system.host->dimension();
        Matrix<T> V = random_normal<T>(n, p, 5);
        for (Index k = 0; k < n * p; ++k) V.data()[k] /= std::sqrt(static_cast<T>(n));
        TangentMap<T, Cuda>& map = system.template gpu<T>();
        const auto end_of = [&](double epsilon, Index j) {
            std::vector<double> from = x;
            for (Index i = 0; i < n; ++i) from[static_cast<std::size_t>(i)] += epsilon * static_cast<double>(V(i, j));
            Matrix<double, Cuda> there = this->to_gpu(from);
            map.advance(this->gpu(), steps, this->span(there), {});
            return this->from_gpu(there);
        };
        Matrix<double, Cuda> there = this->to_gpu(x);
        Matrix<T, Cuda> on_gpu = copy_to_device<T>(this->gpu(), V.view());
        map.advance(this->gpu(), steps, this->span(there), on_gpu.view());
        const Matrix<T> X = copy_to_host<T>(this->gpu(), on_gpu.view());
        double scale = 0;
        for (const double value : x) scale = std::max(scale, std::abs(value));
        for (Index j = 0; j < p; ++j) {
            double before = 0, norm = 1;
            for (Index i = 0; i < n; ++i) norm = std::max(norm, static_cast<double>(std::abs(X(i, j))));
            for (double epsilon : {4e-4, 2e-4, 1e-4}) {
                // so near that no pair crosses the cutoff
                if (system.host->vanishing_exponents() >= 6) epsilon /= 100;
                const std::vector<double> forth = end_of(epsilon, j), back = end_of(-epsilon, j);
                double difference = 0;
                for (Index i = 0; i < n; ++i) {
                    const std::size_t k = static_cast<std::size_t>(i);
                    this->keep_larger(difference,
                                      std::abs((forth[k] - back[k]) / (2 * epsilon) - static_cast<double>(X(i, j))));
                }
                const double rounding =
                    10 * static_cast<double>(steps) * norm *
                    (unit_roundoff<double> * scale / epsilon + static_cast<double>(unit_roundoff<T>));
                if (before > 0) {
                    EXPECT_LE(difference, 0.3 * before + rounding) << "vector " << j << ", epsilon " << epsilon;
                }
                EXPECT_LE(difference, 0.1 * norm) << "vector " << j;
                before = std::max(difference, rounding);
            }
        }
    }
}

// Over a time in which the orbits agree, as they do for 80 steps. Roundings of Z, relative u in T, are random and
// change log|r_ii| of a segment by law·√p·u times the condition of Z, at most 10 after two steps; and no more the sum
// of all, log|det Z|.
TYPED_TEST(GpuLyapunov, SpectrumIsTheHosts) {
    using T = TypeParam;
    constexpr Method methods[] = {Method::Auto,
                                  Method::BlockedHouseholder,
                                  Method::TSQR,
                                  Method::CholeskyQR2,
                                  Method::RandomizedCholeskyQR,
                                  Method::ModifiedGramSchmidt,
                                  Method::ClassicalGramSchmidt};
    Index turn = 0;
    for (Twins& system : every_system(this->gpu())) {
        const Index n = system.host->dimension();
        if (n > 600 || system.name == "henon") continue;  // 80 steps of it stretch by e^{34}
        const double h = system.host->step();
        for (const Index p : {n, std::min<Index>(n, 9)}) {
            LyapunovOptions options{
                .exponents = p, .time = 50 * h, .transient = 20 * h, .alignment = 10 * h, .steps_per_qr = 2};
            const LyapunovSpectrum expected = lyapunov_spectrum(this->host, *system.host, options);
            const double bound =
                law * std::sqrt(static_cast<double>(p)) * static_cast<double>(unit_roundoff<T>) * 10 / (2 * h);
            for (const Method method : in_turn(methods, ++turn)) {
                if (method == Method::TSQR && p > 32) continue;  // the GPU's trees are no wider
                SCOPED_TRACE(system.name + " " + to_string(method) + " " + std::to_string(p));
                options.qr.method = method;
                const LyapunovSpectrum f = this->spectrum(system.template gpu<T>(), options);
                if (method != Method::Auto) {
                    EXPECT_EQ(f.method, method);
                }
                ASSERT_EQ(f.exponents.size(), expected.exponents.size());
                double largest = 0;
                for (std::size_t i = 0; i < f.exponents.size(); ++i) {
                    this->keep_larger(largest, std::abs(f.exponents[i].value - expected.exponents[i].value));
                }
                EXPECT_LE(largest, bound);
                if (p == n) {
                    EXPECT_LE(std::abs(f.sum.value - expected.sum.value), bound);
                }
                EXPECT_LE(this->largest_difference(f.state, expected.state), 1e-9);
                EXPECT_EQ(f.segments, expected.segments);
                EXPECT_GT(f.qr_seconds, 0);
                EXPECT_GT(f.tangent_seconds + f.force_seconds, 0);
                EXPECT_LE(f.qr_seconds + f.tangent_seconds + f.force_seconds, f.seconds);
            }
        }
    }
}

// Where chaos has taken the orbits apart the exponents agree within four standard errors, and the O(1)/T of the
// vectors' beginning.
TYPED_TEST(GpuLyapunov, LongRunsAgreeWithinTheirErrors) {
    std::vector<Twins> systems;
    systems.push_back(twins(this->gpu(), "henon", Henon{}));
    systems.push_back(twins(this->gpu(), "waves", KuramotoSivashinsky{}));
    for (Twins& system : systems) {
        SCOPED_TRACE(system.name);
        const bool map = system.name == "henon";
        const LyapunovOptions options{.exponents = std::min<Index>(system.host->dimension(), 12),
                                      .time = map ? 2000. : 200.,
                                      .transient = 200,
                                      .alignment = 200,
                                      .steps_per_qr = 5};
        const LyapunovSpectrum expected = lyapunov_spectrum(this->host, *system.host, options);
        const LyapunovSpectrum f = this->spectrum(system.template gpu<TypeParam>(), options);
        for (std::size_t i = 0; i < f.exponents.size(); ++i) {
            const Estimate a = f.exponents[i], b = expected.exponents[i];
            EXPECT_LE(std::abs(a.value - b.value), 4 * std::hypot(a.error, b.error) + 1 / options.time) << i;
        }
    }
}

// As on the host: pairs differ from zero by O(1)/T, vanishing exponents by log(T)/T.
TYPED_TEST(GpuLyapunov, ExponentsPairAndVanish) {
    std::vector<Twins> systems;
    systems.push_back(
        twins(this->gpu(), "fput ring", FputBeta{.size = 5, .energy = 5, .periodic = true, .step = 0.02}));
    systems.push_back(twins(this->gpu(), "soft 2d", soft(6, 2)));
    if (!quick()) systems.push_back(twins(this->gpu(), "soft 3d", soft(8, 3)));
    for (Twins& system : systems) {
        SCOPED_TRACE(system.name);
        const bool chain = system.name == "fput ring";
        const double time = chain ? 1000 : 60;
        const LyapunovSpectrum f =
            this->spectrum(system.template gpu<TypeParam>(),
                           {.time = time, .transient = 20, .alignment = 20, .steps_per_qr = chain ? 25 : 20});
        const Index n = system.host->dimension();
        const auto lambda = [&](Index i) { return f.exponents[static_cast<std::size_t>(i)].value; };
        for (Index i = 0; i < n / 2; ++i) EXPECT_LE(std::abs(lambda(i) + lambda(n - 1 - i)), 10 / time) << "pair " << i;
        Index zeros = 0;
        for (Index i = 0; i < n; ++i) zeros += std::abs(lambda(i)) <= 3 * std::log(time) / time;
        EXPECT_EQ(zeros, system.host->vanishing_exponents());
        EXPECT_LE(std::abs(*f.energy_drift), 0.01);
    }
}

TYPED_TEST(GpuLyapunov, GoesOnFromACheckpointWithTheSameBits) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("quoin-gpu-lyapunov-" + std::to_string(getpid()))).string();
    Twins system = twins(this->gpu(), "wca 3d", Particles{.count = 32});
    TangentMap<TypeParam, Cuda>& map = system.template gpu<TypeParam>();
    const double h = map.step();
    LyapunovOptions options{
        .exponents = 21, .time = 60 * h, .transient = 10 * h, .alignment = 10 * h, .steps_per_qr = 1};
    const LyapunovSpectrum whole = this->spectrum(map, options);
    options.checkpoint = path;
    for (const Index stop : {Index{5}, Index{15}, Index{47}}) {
        options.on_segment = [&](const LyapunovProgress& progress) {
            return static_cast<Index>(std::lround(progress.time / h)) < stop;
        };
        EXPECT_FALSE(this->spectrum(map, options).completed);
    }
    options.on_segment = nullptr;
    EXPECT_THROW(lyapunov_spectrum(this->host, *system.host, options), InvalidArgument) << "of another device";
    const LyapunovSpectrum resumed = this->spectrum(map, options);
    EXPECT_TRUE(resumed.completed);
    EXPECT_EQ(resumed.state, whole.state);
    ASSERT_EQ(resumed.exponents.size(), whole.exponents.size());
    for (std::size_t i = 0; i < whole.exponents.size(); ++i) {
        EXPECT_EQ(resumed.exponents[i].value, whole.exponents[i].value);
    }
    EXPECT_TRUE(same_bits<double>(resumed.averages.view(), whole.averages.view()));
    std::filesystem::remove(path);
}

TYPED_TEST(GpuLyapunov, ParticlesThatMeetAreNamed) {
    Twins system = twins(this->gpu(), "meeting", Particles{.count = 32});
    std::vector<double> x = system.host->initial_state(1);
    std::copy_n(x.begin() + 15, 3, x.begin() + 6);
    Matrix<double, Cuda> there = this->to_gpu(x);
    for (const Index p : {0, 3}) {
        Matrix<TypeParam, Cuda> X = copy_to_device<TypeParam>(this->gpu(), random_normal<TypeParam>(192, p, 1).view());
        try {
            system.template gpu<TypeParam>().advance(this->gpu(), 3, this->span(there), X.view());
            FAIL();
        } catch (const InvalidArgument& e) {
            EXPECT_NE(std::string(e.what()).find("particles 2 and 5 overlap"), std::string::npos) << e.what();
        }
        EXPECT_EQ(this->from_gpu(there), x) << "the state stays as it was";
    }
}

}  // namespace
}  // namespace quoin::test
