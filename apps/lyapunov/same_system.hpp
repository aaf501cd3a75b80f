#pragma once

#include <memory>
#include <utility>

#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// Base of a system that takes the steps of a host system with other vectors or on another device. It forwards the
/// properties of the host system.
template <class T, class D>
class SameSystem : public TangentMap<T, D> {
public:
    explicit SameSystem(std::unique_ptr<TangentMap<>> system) : system_(std::move(system)) {}

    Index dimension() const override { return system_->dimension(); }
    double step() const override { return system_->step(); }
    bool set_step(double h) override { return system_->set_step(h); }
    std::string description() const override { return system_->description(); }
    std::vector<double> initial_state(std::uint64_t seed) const override { return system_->initial_state(seed); }
    std::optional<double> divergence() const override { return system_->divergence(); }
    Index vanishing_exponents() const override { return system_->vanishing_exponents(); }
    std::optional<double> energy(std::span<const double> x) const override { return system_->energy(x); }

protected:
    TangentMap<>& system() { return *system_; }

private:
    std::unique_ptr<TangentMap<>> system_;
};

}  // namespace quoin
