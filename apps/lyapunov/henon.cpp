#include "lyapunov/henon.hpp"

#include <cmath>

#include "lyapunov/map.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"

namespace quoin {
namespace {

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
