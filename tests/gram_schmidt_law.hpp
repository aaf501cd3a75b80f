#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "checks.hpp"
#include "gallery.hpp"

/// How orthogonality is lost with κ by Gram-Schmidt without reorthogonalization, on matrices with one large singular
/// value.
namespace quoin::test {

inline std::vector<double> near_one_line(Index n, double kappa) {
    std::vector<double> s(n, 1 / kappa);
    s[0] = 1;
    return s;
}

/// ‖A‖_F ‖A⁻¹‖₂ of such a matrix.
inline double kappa_f(Index n, double kappa) { return std::sqrt(kappa * kappa + static_cast<double>(n) - 1); }

/// Modified Gram-Schmidt is Householder's method on [0; A] (Björck and Paige 1992), so that A + ΔA = Q̃R with
/// orthonormal Q̃, ‖ΔA‖_F <= law·nu‖A‖_F, and the same for Q R; then ‖Q − Q̃‖_F <= 2 law·nu κ, and ‖I − QᵀQ‖_F twice
/// that and its square. In units of nu.
inline double max_modified_loss(Index n, double u, double kappa_f) {
    const double nu = static_cast<double>(n) * u, apart = 2 * law * nu * kappa_f;
    return (2 * apart + apart * apart) / nu;
}

/// Two panels by modified Gram-Schmidt: the first loses ω₁ = O(nu κ(A₁)), and Q₁ᵀQ₂ = ((I − Q₁ᵀQ₁)Q₁ᵀA₂ + E) R₂₂⁻¹ with
/// ‖E‖ = O(nu)‖A‖: together they lose at most 1 + κ times as much as modified Gram-Schmidt.
inline double max_classical_loss(Index n, double u, double kappa_f) {
    return max_modified_loss(n, u, kappa_f) * (1 + kappa_f);
}

/// Returns the most that a scheme may lose.
inline double max_loss(const GramSchmidtCase& scheme, Index n, double u, double kappa_f) {
    return scheme.unconditional()                         ? law
           : scheme.method == Method::ModifiedGramSchmidt ? max_modified_loss(n, u, kappa_f)
                                                          : max_classical_loss(n, u, kappa_f);
}

/// Returns the slope of the logarithms of `lost(A)` over κ = 10, √1000, 100, … to `largest_kappa`, where `used(κ)`;
/// each is at most `bound(κ)`. In f32 four κ are used at least: the loss of one matrix varies by a factor of 2.
template <class T, class Lost, class Bound, class Used>
double slope_of_loss(Index m, Index n, double largest_kappa, Lost lost, Bound bound, Used used) {
    std::vector<std::pair<double, double>> points;
    for (double kappa = 10; kappa <= 1.01 * largest_kappa; kappa *= std::sqrt(10.0)) {
        const Matrix<T> A = with_singular_values<T>(m, n, near_one_line(n, kappa));
        const double found = lost(A.view());
        EXPECT_LE(found, bound(kappa)) << "kappa " << kappa;
        if (used(kappa)) points.emplace_back(std::log10(kappa), std::log10(found));
    }
    double x = 0, y = 0, xx = 0, xy = 0;
    const double count = static_cast<double>(points.size());
    for (const auto& [a, b] : points) x += a, y += b, xx += a * a, xy += a * b;
    return (count * xy - x * y) / (count * xx - x * x);
}

/// "cgs_always 300x40, panels of 16".
inline std::string case_name(const GramSchmidtCase& scheme, Index m, Index n, Index width) {
    return std::string(scheme.name) + " " + shape_name(m, n) + ", panels of " + std::to_string(width);
}

}  // namespace quoin::test
