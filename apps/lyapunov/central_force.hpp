#pragma once

// Forces between two particles, for every device.

#include <cmath>

#include "quoin/apps/lyapunov.hpp"

namespace quoin {

inline double cutoff_of(const Particles& s) {
    if (s.potential == Potential::Wca) return std::pow(2.0, 1.0 / 6);
    if (s.potential == Potential::Soft) return 1;
    if (s.cutoff > 0) return s.cutoff;
    return s.potential == Potential::Yukawa ? 6 / s.kappa : 2.5;
}

/// L of N/Lᵈ = density.
inline double box_side(const Particles& s) {
    return std::pow(static_cast<double>(s.count) / s.density, 1.0 / s.dimensions);
}

/// The force of a pair with difference vector r, at the distance r = |r|: U, F_i = αr, and δF_i = (α + β r rᵀ)(δr_i −
/// δr_j).
struct PairForce {
    double U, alpha, beta;
};

/// −∇U of the shifted potential, U(r) − U(r_c) − (r − r_c)U'(r_c).
class CentralForce {
public:
    explicit CentralForce(const Particles& s)
        : cutoff(cutoff_of(s)), potential_(s.potential), kappa_(s.kappa), at_cutoff_(unshifted(cutoff)) {}

    constexpr PairForce at(double r) const {
        const Derivatives f = unshifted(r);
        // F_i = −U'(r) r/|r|; δF_i = −(U'/r)(I − r̂r̂ᵀ)δr − U'' r̂r̂ᵀδr
        const double alpha = (at_cutoff_.dU - f.dU) / r;
        return {f.U - at_cutoff_.U - (r - cutoff) * at_cutoff_.dU, alpha, (-f.ddU - alpha) / (r * r)};
    }

    double cutoff;

private:
    /// U, U' and U''.
    struct Derivatives {
        double U, dU, ddU;
    };
    constexpr Derivatives unshifted(double r) const {
        const double inverse = 1 / r;
        if (potential_ == Potential::Yukawa) {
            const double U = std::exp(-kappa_ * r) * inverse;
            return {U, -U * (kappa_ + inverse), U * (kappa_ * kappa_ + 2 * kappa_ * inverse + 2 * inverse * inverse)};
        }
        if (potential_ == Potential::Soft) {
            const double s = 1 - r * r;
            return {100 * s * s * s * s, -800 * r * s * s * s, 800 * s * s * (6 * r * r - s)};
        }
        const double s2 = inverse * inverse, s6 = s2 * s2 * s2, s12 = s6 * s6;
        return {4 * (s12 - s6), (24 * s6 - 48 * s12) * inverse, (624 * s12 - 168 * s6) * s2};
    }

    Potential potential_;
    double kappa_;
    Derivatives at_cutoff_;
};

/// Two particles nearer than this have met: the step is too long.
inline constexpr double closest_pair = 1e-3;

/// Throws InvalidArgument, which names the two particles.
[[noreturn]] void throw_overlap(Index i, Index j, double step);

}  // namespace quoin
