#include <cmath>

#include "lyapunov/map.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"

namespace quoin {
namespace {

struct HenonEquations {
    double a, b;

    Index dimension() const { return 2; }
    void operator()(const double* x, double* y) const {
        y[0] = 1 - a * x[0] * x[0] + x[1];
        y[1] = b * x[0];
    }
    void jvp(const double* x, MatrixView<const double> X, MatrixView<double> Y) const {
        for (Index j = 0; j < X.cols; ++j) {
            Y(0, j) = -2 * a * x[0] * X(0, j) + X(1, j);
            Y(1, j) = b * X(0, j);
        }
    }
};

class HenonMap final : public DiscreteMap<HenonEquations> {
public:
    using DiscreteMap::DiscreteMap;
    std::string description() const override { return fmt::format("henon a={} b={}", map_.a, map_.b); }
    std::vector<double> initial_state(std::uint64_t seed) const override {
        NormalNumbers normal(seed);
        return {0.1 + 0.01 * normal(), 0.01 * normal()};
    }
    std::optional<double> divergence() const override { return std::log(std::abs(map_.b)); }
};

}  // namespace

std::unique_ptr<TangentMap<>> tangent_map(const Henon& s) {
    require_finite("a", s.a);
    require_finite("b", s.b);
    return std::make_unique<HenonMap>(HenonEquations{s.a, s.b});
}

}  // namespace quoin
