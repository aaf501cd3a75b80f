#include <cmath>

#include "lyapunov/flow.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"

namespace quoin {
namespace {

struct Lorenz63Field {
    static constexpr Index block_columns = 16;
    double sigma, rho, beta;

    Index dimension() const { return 3; }
    double flops() const { return 10; }
    void operator()(const double* x, double* dx) const {
        dx[0] = sigma * (x[1] - x[0]);
        dx[1] = x[0] * (rho - x[2]) - x[1];
        dx[2] = x[0] * x[1] - beta * x[2];
    }
    void jvp(const double* x, MatrixView<const double> X, MatrixView<double> dX) const {
        for (Index j = 0; j < X.cols; ++j) {
            const double* v = X.at(0, j);
            double* dv = dX.at(0, j);
            dv[0] = sigma * (v[1] - v[0]);
            dv[1] = v[0] * (rho - x[2]) - x[0] * v[2] - v[1];
            dv[2] = v[0] * x[1] + x[0] * v[1] - beta * v[2];
        }
    }
};

class Lorenz63Flow final : public Flow<Lorenz63Field> {
public:
    using Flow::Flow;
    std::string description() const override {
        return fmt::format("lorenz63 sigma={} rho={} beta={} step={}", field_.sigma, field_.rho, field_.beta, step());
    }
    std::vector<double> initial_state(std::uint64_t seed) const override {
        NormalNumbers normal(seed);
        return {1 + normal(), 1 + normal(), 20 + normal()};
    }
    std::optional<double> divergence() const override { return -(field_.sigma + 1 + field_.beta); }
    Index vanishing_exponents() const override { return 1; }
};

struct Lorenz96Field {
    static constexpr Index block_columns = 16;
    Index size;
    double forcing;

    Index dimension() const { return size; }
    double flops() const { return 6 * static_cast<double>(size); }

    /// g(i, i−2, i−1, i+1) for every i, the indices modulo N.
    template <class G>
    void around(G g) const {
        const Index N = size;
        g(Index{0}, N - 2, N - 1, Index{1});
        g(Index{1}, N - 1, Index{0}, Index{2});
        for (Index i = 2; i + 1 < N; ++i) g(i, i - 2, i - 1, i + 1);
        g(N - 1, N - 3, N - 2, Index{0});
    }
    void operator()(const double* x, double* dx) const {
        around([&](Index i, Index a, Index b, Index c) { dx[i] = (x[c] - x[a]) * x[b] - x[i] + forcing; });
    }
    void jvp(const double* x, MatrixView<const double> X, MatrixView<double> dX) const {
        for (Index j = 0; j < X.cols; ++j) {
            const double* v = X.at(0, j);
            double* dv = dX.at(0, j);
            around([&](Index i, Index a, Index b, Index c) {
                dv[i] = (v[c] - v[a]) * x[b] + (x[c] - x[a]) * v[b] - v[i];
            });
        }
    }
};

class Lorenz96Flow final : public Flow<Lorenz96Field> {
public:
    using Flow::Flow;
    std::string description() const override {
        return fmt::format("lorenz96 size={} forcing={} step={}", field_.size, field_.forcing, step());
    }
    std::vector<double> initial_state(std::uint64_t seed) const override {
        NormalNumbers normal(seed);
        std::vector<double> x(static_cast<std::size_t>(field_.size));
        for (double& value : x) value = field_.forcing + normal();
        return x;
    }
    std::optional<double> divergence() const override { return -static_cast<double>(field_.size); }
    Index vanishing_exponents() const override { return 1; }
};

}  // namespace

std::unique_ptr<TangentMap<>> tangent_map(const Lorenz63& s) {
    require_positive("step", s.step);
    require_finite("sigma", s.sigma);
    require_finite("rho", s.rho);
    require_finite("beta", s.beta);
    return std::make_unique<Lorenz63Flow>(Lorenz63Field{s.sigma, s.rho, s.beta}, s.step);
}

std::unique_ptr<TangentMap<>> tangent_map(const Lorenz96& s) {
    require_positive("step", s.step);
    require_finite("forcing", s.forcing);
    require_at_least<Index>("the size of lorenz96", s.size, 4);
    return std::make_unique<Lorenz96Flow>(Lorenz96Field{s.size, s.forcing}, s.step);
}

}  // namespace quoin
