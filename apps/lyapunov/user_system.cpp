#include <limits>

#include "lyapunov/delay_flow.hpp"
#include "lyapunov/flow.hpp"
#include "lyapunov/map.hpp"
#include "lyapunov/require.hpp"

namespace quoin {
namespace {

/// The caller's code, `motion` and jvp, as a field or map with the number of components of x₀.
template <class System, auto motion>
struct UserEquations {
    static constexpr Index block_columns = std::numeric_limits<Index>::max() / 2;  // the caller's code has all vectors
    System user;

    Index dimension() const { return static_cast<Index>(user.x0.size()); }
    Index components() const { return dimension(); }
    double flops() const { return 0; }
    void operator()(const double* x, double* y) const { (user.*motion)(x, y); }
    void jvp(const double* x, MatrixView<const double> X, MatrixView<double> Y) const { user.jvp(x, X, Y); }
};
using UserField = UserEquations<UserFlow, &UserFlow::field>;
using UserDelayField = UserEquations<UserDelayFlow, &UserDelayFlow::field>;
using UserStep = UserEquations<UserMap, &UserMap::map>;

class UserFlowMap final : public Flow<UserField> {
public:
    using Flow::Flow;
    std::string description() const override {
        return fmt::format("a caller's flow, dimension={} step={}", dimension(), step());
    }
    std::vector<double> initial_state(std::uint64_t) const override { return field_.user.x0; }
    std::optional<double> divergence() const override { return field_.user.divergence; }
};

class UserDelayMap final : public DelayFlow<UserDelayField> {
public:
    using DelayFlow::DelayFlow;
    std::string description() const override {
        return fmt::format("a caller's flow, components={} tau={} intervals={}", field_.components(), tau(),
                           intervals());
    }
    std::vector<double> initial_state(std::uint64_t) const override {
        const std::vector<double>& x0 = field_.user.x0;
        std::vector<double> x;
        for (Index i = 0; i <= intervals(); ++i) x.insert(x.end(), x0.begin(), x0.end());
        return x;
    }
};

class UserDiscreteMap final : public DiscreteMap<UserStep> {
public:
    using DiscreteMap::DiscreteMap;
    std::string description() const override { return fmt::format("a caller's map, dimension={}", dimension()); }
    std::vector<double> initial_state(std::uint64_t) const override { return map_.user.x0; }
    std::optional<double> divergence() const override { return map_.user.divergence; }
};

void require_system(const std::vector<double>& x0, bool f, bool jvp) {
    if (x0.empty()) throw InvalidArgument("x0 must have at least one component, and has none");
    if (!f) throw InvalidArgument("the system needs a function for its motion, and has none");
    if (!jvp) throw InvalidArgument("the system needs jvp, the product with its Jacobian, and has none");
}

}  // namespace

std::unique_ptr<TangentMap<>> tangent_map(UserFlow flow) {
    require_system(flow.x0, bool(flow.field), bool(flow.jvp));
    require_positive("step", flow.step);
    const double step = flow.step;
    return std::make_unique<UserFlowMap>(UserField{std::move(flow)}, step);
}

std::unique_ptr<TangentMap<>> tangent_map(UserDelayFlow flow) {
    require_system(flow.x0, bool(flow.field), bool(flow.jvp));
    require_positive("tau", flow.tau);
    require_at_least<Index>("intervals", flow.intervals, 3);
    const double tau = flow.tau;
    const Index intervals = flow.intervals;
    return std::make_unique<UserDelayMap>(UserDelayField{std::move(flow)}, tau, intervals);
}

std::unique_ptr<TangentMap<>> tangent_map(UserMap map) {
    require_system(map.x0, bool(map.map), bool(map.jvp));
    return std::make_unique<UserDiscreteMap>(UserStep{std::move(map)});
}

}  // namespace quoin
