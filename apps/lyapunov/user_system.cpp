#include <limits>

#include "lyapunov/delay_flow.hpp"
#include "lyapunov/flow.hpp"
#include "lyapunov/map.hpp"
#include "lyapunov/require.hpp"

namespace quoin {
namespace {

struct UserField {
    static constexpr Index block_columns = std::numeric_limits<Index>::max() / 2;  // the caller's code has all vectors
    UserFlow flow;

    Index dimension() const { return static_cast<Index>(flow.x0.size()); }
    double flops() const { return 0; }
    void operator()(const double* x, double* dx) const { flow.field(x, dx); }
    void jvp(const double* x, MatrixView<const double> X, MatrixView<double> dX) const { flow.jvp(x, X, dX); }
};

class UserFlowMap final : public Flow<UserField> {
public:
    using Flow::Flow;
    std::string description() const override {
        return fmt::format("a caller's flow, dimension={} step={}", dimension(), step());
    }
    std::vector<double> initial_state(std::uint64_t) const override { return field_.flow.x0; }
    std::optional<double> divergence() const override { return field_.flow.divergence; }
};

struct UserDelayField {
    static constexpr Index block_columns = UserField::block_columns;
    UserDelayFlow flow;

    Index components() const { return static_cast<Index>(flow.x0.size()); }
    double flops() const { return 0; }
    void operator()(const double* z, double* dx) const { flow.field(z, dx); }
    void jvp(const double* z, MatrixView<const double> Z, MatrixView<double> dX) const { flow.jvp(z, Z, dX); }
};

class UserDelayMap final : public DelayFlow<UserDelayField> {
public:
    using DelayFlow::DelayFlow;
    std::string description() const override {
        return fmt::format("a caller's flow, components={} tau={} intervals={}", field_.components(), tau(),
                           intervals());
    }
    std::vector<double> initial_state(std::uint64_t) const override {
        const std::vector<double>& x0 = field_.flow.x0;
        std::vector<double> x;
        for (Index i = 0; i <= intervals(); ++i) x.insert(x.end(), x0.begin(), x0.end());
        return x;
    }
};

struct UserEquations {
    UserMap user;

    Index dimension() const { return static_cast<Index>(user.x0.size()); }
    void operator()(const double* x, double* y) const { user.map(x, y); }
    void jvp(const double* x, MatrixView<const double> X, MatrixView<double> Y) const { user.jvp(x, X, Y); }
};

class UserDiscreteMap final : public DiscreteMap<UserEquations> {
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
    return std::make_unique<UserDiscreteMap>(UserEquations{std::move(map)});
}

}  // namespace quoin
