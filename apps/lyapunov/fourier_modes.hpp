#pragma once

// u(ξ) = √2 Σ_k a_k cos(q_k ξ) + b_k sin(q_k ξ), q_k = 2πk/L, k = 1 … M, as the coefficients [a₁ b₁ a₂ b₂ …], so that
// ‖x‖² is the mean of u². Products of two functions have no aliases on more than 3M points (Orszag 1971).

#include <numbers>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin {

inline double wavenumber(double length, Index k) { return 2 * std::numbers::pi * static_cast<double>(k) / length; }

/// Returns the growth rate λ = q² − q⁴ of every coefficient under u_t = −u_xx − u_xxxx.
inline std::vector<double> kuramoto_sivashinsky_rates(double length, Index modes) {
    std::vector<double> rates;
    for (Index k = 1; k <= modes; ++k) {
        const double q = wavenumber(length, k);
        rates.insert(rates.end(), 2, q * q - q * q * q * q);
    }
    return rates;
}

}  // namespace quoin
