#pragma once

#include <vector>

#include "lyapunov/couple.hpp"
#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// Particles of mass 1 under central pair forces by velocity Verlet, a symplectic map:
///
///     p := p + ½h F(q),   q := q + h p,   p := p + ½h F(q)
///
/// and its derivative, with δF = DF(q) δq a sum over pairs (`Coupling`). State and vectors are [q; p], d components a
/// particle. The state goes ahead by some steps and leaves the pairs of each; then every block of vectors takes all of
/// these steps in the cache.
class Verlet : public TangentMap<> {
public:
    /// `fixed` particles beyond the N take part in pairs and do not move.
    Verlet(Index particles, int dimensions, Index fixed, double step);

    Index dimension() const override { return 2 * particles_ * d_; }
    double step() const override { return step_; }
    bool set_step(double h) override { return step_ = h, true; }
    void advance(Context<Host>& ctx, Index steps, std::span<double> x, MatrixView<double> X) override;
    std::optional<double> energy(std::span<const double> x) const override;
    std::optional<double> divergence() const override { return 0; }

protected:
    using Couplings = std::vector<Coupling>;
    /// F := F(q), d·N; returns the potential energy; appends DF(q) to `couplings`, unless null, in an order that
    /// depends on q alone.
    virtual double forces(const double* q, double* F, Couplings* couplings) const = 0;

    Index particles() const { return particles_; }
    int space() const { return d_; }

private:
    Index particles_;
    int d_;
    Index fixed_;
    double step_;
};

}  // namespace quoin
