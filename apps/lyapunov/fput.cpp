#include <cmath>

#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"
#include "lyapunov/verlet.hpp"

namespace quoin {
namespace {

/// Springs between neighbours; the walls are one particle, N, that does not move.
class FputChain final : public Verlet {
public:
    explicit FputChain(const FputBeta& s) : Verlet(s.size, 1, s.periodic ? 0 : 1, s.step), s_(s) {}

    std::string description() const override {
        return fmt::format("fput size={} beta={} energy={} periodic={} step={}", s_.size, s_.beta, s_.energy,
                           s_.periodic, s_.step);
    }
    /// Random momenta of the chain's energy, at rest as a whole if it is a ring.
    std::vector<double> initial_state(std::uint64_t seed) const override {
        NormalNumbers normal(seed);
        const std::size_t N = static_cast<std::size_t>(s_.size);
        std::vector<double> x(2 * N);
        double sum = 0, squares = 0;
        for (std::size_t i = N; i < 2 * N; ++i) sum += x[i] = normal();
        for (std::size_t i = N; i < 2 * N; ++i) {
            if (s_.periodic) x[i] -= sum / static_cast<double>(N);
            squares += x[i] * x[i];
        }
        for (std::size_t i = N; i < 2 * N; ++i) x[i] *= std::sqrt(2 * s_.energy * static_cast<double>(N) / squares);
        return x;
    }
    /// Energy and time; of a ring momentum and place as well.
    Index vanishing_exponents() const override { return s_.periodic ? 4 : 2; }

protected:
    double forces(const double* q, double* F, Couplings* couplings) const override {
        const Index N = s_.size;
        double potential = 0;
        std::fill_n(F, N, 0.);
        const auto spring = [&](Index i, Index j) {
            // V = Δ²/2 + βΔ⁴/4 of Δ = q_i − q_j: F_i = −V' = −F_j, and α = −V''
            const double delta = (i < N ? q[i] : 0) - (j < N ? q[j] : 0), square = delta * delta;
            const double force = -delta * (1 + s_.beta * square);
            potential += square / 2 + s_.beta * square * square / 4;
            if (i < N) F[i] += force;
            if (j < N) F[j] -= force;
            if (couplings) couplings->push_back({i, j, -(1 + 3 * s_.beta * square), 0, {0, 0, 0}});
        };
        for (Index i = 0; i + 1 < N; ++i) spring(i, i + 1);
        if (s_.periodic) {
            spring(N - 1, 0);
        } else {
            spring(0, N);
            spring(N - 1, N);
        }
        return potential;
    }

private:
    FputBeta s_;
};

}  // namespace

std::unique_ptr<TangentMap<>> tangent_map(const FputBeta& s) {
    require_at_least<Index>("the size of fput", s.size, s.periodic ? 3 : 1);
    require_positive("energy", s.energy);
    require_positive("step", s.step);
    require_finite("beta", s.beta);
    require_at_least<double>("beta", s.beta, 0);
    return std::make_unique<FputChain>(s);
}

}  // namespace quoin
