#include <cmath>

#include "lyapunov/delay_flow.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"

namespace quoin {
namespace {

struct MackeyGlassField {
    static constexpr Index block_columns = 16;
    double a, b, power;

    Index components() const { return 1; }
    double flops() const { return 4; }
    void operator()(const double* z, double* dx) const { dx[0] = a * z[1] / (1 + std::pow(z[1], power)) - b * z[0]; }
    void jvp(const double* z, MatrixView<const double> Z, MatrixView<double> dX) const {
        // d/dy of ay/(1 + yⁿ)
        const double yn = std::pow(z[1], power), slope = a * (1 + (1 - power) * yn) / ((1 + yn) * (1 + yn));
        for (Index j = 0; j < Z.cols; ++j) dX(0, j) = slope * Z(1, j) - b * Z(0, j);
    }
};

class MackeyGlassFlow final : public DelayFlow<MackeyGlassField> {
public:
    using DelayFlow::DelayFlow;
    std::string description() const override {
        return fmt::format("mackey-glass a={} b={} n={} tau={} intervals={}", field_.a, field_.b, field_.power, tau(),
                           intervals());
    }
    std::vector<double> initial_state(std::uint64_t seed) const override {
        NormalNumbers normal(seed);
        return std::vector<double>(static_cast<std::size_t>(dimension()), 0.5 + 0.05 * normal());
    }
    Index vanishing_exponents() const override { return 1; }
};

}  // namespace

std::unique_ptr<TangentMap<>> tangent_map(const MackeyGlass& s) {
    require_finite("a", s.a);
    require_finite("b", s.b);
    require_positive("power", s.power);
    require_positive("tau", s.tau);
    require_at_least<Index>("the intervals of mackey-glass", s.intervals, 3);
    return std::make_unique<MackeyGlassFlow>(MackeyGlassField{s.a, s.b, s.power}, s.tau, s.intervals);
}

}  // namespace quoin
