#include <cmath>

#include "lyapunov/central_force.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/pairs.hpp"
#include "lyapunov/require.hpp"
#include "lyapunov/verlet.hpp"

namespace quoin {
namespace {

template <int D>
class Fluid final : public Verlet {
public:
    Fluid(const Particles& s, double side)
        : Verlet(s.count, D, 0, s.step), s_(s), L_(side), force_(s), search_(s.count, side, force_.cutoff) {}

    std::string description() const override {
        return fmt::format(
            "particles count={} dimensions={} potential={} density={} temperature={} kappa={} cutoff={} step={}",
            s_.count, D, to_string(s_.potential), s_.density, s_.temperature, s_.kappa, force_.cutoff, s_.step);
    }
    /// A square or cubic lattice, and momenta of the temperature whose sum is zero.
    std::vector<double> initial_state(std::uint64_t seed) const override {
        const Index N = s_.count, sites = lattice_sites(N);
        std::vector<double> x(static_cast<std::size_t>(2 * D * N));
        for (Index i = 0; i < N; ++i) {
            Index rest = i;
            for (int a = 0; a < D; ++a) {
                x[static_cast<std::size_t>(D * i + a)] =
                    L_ * (static_cast<double>(rest % sites) + 0.5) / static_cast<double>(sites);
                rest /= sites;
            }
        }
        NormalNumbers normal(seed);
        double* const p = x.data() + D * N;
        for (Index i = 0; i < D * N; ++i) p[i] = normal();
        double squares = 0;
        for (int a = 0; a < D; ++a) {
            double sum = 0;
            for (Index i = 0; i < N; ++i) sum += p[D * i + a];
            for (Index i = 0; i < N; ++i) {
                p[D * i + a] -= sum / static_cast<double>(N);
                squares += p[D * i + a] * p[D * i + a];
            }
        }
        const double scale = std::sqrt(s_.temperature * static_cast<double>(D * (N - 1)) / squares);
        for (Index i = 0; i < D * N; ++i) p[i] *= scale;
        return x;
    }
    /// d momenta, d places of the whole, energy and time.
    Index vanishing_exponents() const override { return 2 * D + 2; }

    static Index lattice_sites(Index count) {
        Index sites = static_cast<Index>(std::ceil(std::pow(static_cast<double>(count), 1.0 / D) - 1e-9));
        return std::max<Index>(1, sites);
    }

protected:
    double forces(const double* q, double* F, Couplings* couplings) const override {
        double potential = 0;
        std::fill_n(F, D * s_.count, 0.);
        search_.for_each(q, [&](Index i, Index j, const double* r, double square) {
            if (!(square > closest_pair * closest_pair)) throw_overlap(i, j, s_.step);
            // F_i = αr
            const PairForce f = force_.at(std::sqrt(square));
            potential += f.U;
            for (int a = 0; a < D; ++a) {
                F[D * i + a] += f.alpha * r[a];
                F[D * j + a] -= f.alpha * r[a];
            }
            if (couplings) {
                Coupling c{i, j, f.alpha, f.beta, {0, 0, 0}};
                std::copy_n(r, D, c.r);
                couplings->push_back(c);
            }
        });
        return potential;
    }

private:
    Particles s_;
    double L_;
    CentralForce force_;
    PairSearch<D> search_;
};

template <int D>
std::unique_ptr<TangentMap<>> fluid(const Particles& s) {
    const double side = box_side(s), cutoff = cutoff_of(s);
    if (side < 2 * cutoff) {
        throw InvalidArgument(
            fmt::format("the box of {} particles at density {} has the side {:.4g}, and must have twice the "
                        "cutoff of {:.4g}: more particles, or a lower density",
                        s.count, s.density, side, cutoff));
    }
    const double neighbours = side / static_cast<double>(Fluid<D>::lattice_sites(s.count));
    const bool hard = s.potential == Potential::LennardJones || s.potential == Potential::Wca;
    if (hard && neighbours < 0.8) {
        throw InvalidArgument(
            fmt::format("particles would overlap: at density {} the first positions, a lattice, are {:.3g} "
                        "apart, and must be 0.8 apart",
                        s.density, neighbours));
    }
    return std::make_unique<Fluid<D>>(s, side);
}

}  // namespace

void throw_overlap(Index i, Index j, double step) {
    throw InvalidArgument(fmt::format(
        "particles {} and {} overlap, nearer than {}: their step of {} is too long, or their energy too high", i, j,
        closest_pair, step));
}

const char* to_string(Potential potential) {
    constexpr const char* names[] = {"lennard-jones", "wca", "yukawa", "soft"};
    return names[static_cast<int>(potential)];
}

std::unique_ptr<TangentMap<>> tangent_map(const Particles& s) {
    if (s.dimensions != 2 && s.dimensions != 3) {
        throw InvalidArgument(fmt::format("dimensions must be 2 or 3, and is {}", s.dimensions));
    }
    require_at_least<Index>("the number of particles", s.count, 2);
    require_positive("density", s.density);
    require_positive("temperature", s.temperature);
    require_positive("kappa", s.kappa);
    require_positive("step", s.step);
    require_finite("cutoff", s.cutoff);
    require_at_least<double>("cutoff", s.cutoff, 0);
    if ((s.potential == Potential::Wca || s.potential == Potential::Soft) && s.cutoff > 0) {
        throw InvalidArgument(
            fmt::format("cutoff is for lennard-jones and yukawa; that of {} belongs to it", to_string(s.potential)));
    }
    return s.dimensions == 2 ? fluid<2>(s) : fluid<3>(s);
}

}  // namespace quoin
