// CholeskyQR2 (Yamamoto, Nakatsukasa, Yanagisawa, Fukaya 2015) and shifted CholeskyQR3 (Fukaya, Kannan, Nakatsukasa,
// Yamamoto, Yanagisawa 2020), stopped before their last pass, which the caller joins with what it does next.

#include <array>
#include <limits>

#include "algorithms/factorization.hpp"
#include "algorithms/instantiate.hpp"

namespace quoin {

namespace {

/// ‖I − G‖_F <= 1/2 puts every singular value of Q₁ into [√½, √(3/2)], so that one more Cholesky step leaves
/// ‖I − QᵀQ‖ = O(nu), whatever the first step did.
constexpr double certificate = 0.5;

/// A is overwritten by Q₁ = A R₁⁻¹ only where κ₁(R₁D)²u < condition_gate·n, D scaling columns to unit norm: that is where
/// κ₂(AD)²u is about O(1), since κ₁ is about √n κ₂. The Gram matrix is known to a small multiple of u, so that
/// ‖Q₁‖² = 1 + O(κ₂²u) is O(1) then, and with it A = Q₁ R₁ accurate to O(nu), certificate or not.
constexpr double condition_gate = 16;

}  // namespace

template <class T, class D>
CholeskyPasses cholesky_passes(Context<D>& ctx, bool shifted, MatrixView<const T, D> A, MatrixView<T, D> Q1,
                               MatrixView<T, D> R, MatrixView<T, D> R2) {
    using State = CholeskyPasses::State;
    using Factors = std::array<MatrixView<const T, D>, 1>;
    constexpr T u = std::numeric_limits<T>::epsilon() / 2;
    const Index n = A.cols;
    const T nu = static_cast<T>(n) * u;
    CholeskyPasses result;
    // G = AᵀA
    solve_and_gram<T>(ctx, A, {}, {}, R);
    result.column = inspect_gram<T>(ctx, R).unusable_column;
    if (result.column >= 0) {
        result.state = State::Unusable;
        return result;
    }
    if (shifted) {
        // chol(G + s diag(G)): the shift relative to each column makes it independent of the columns' scales
        scale_diagonal<T>(ctx, 1 + 10 * nu, R);
    }
    result.column = cholesky<T>(ctx, R, T(0));
    if (result.column >= 0) return result;
    throw_if_stopped(ctx);
    if (shifted) {
        // Q₀ = A R₀⁻¹, G = Q₀ᵀQ₀
        solve_and_gram<T>(ctx, A, Factors{R}, Q1, R2);
        result.state = State::Improved;
        const GramInspection found = inspect_gram<T>(ctx, R2);
        result.column = found.unusable_column;
        // ‖Q₀‖_F² = tr G <= 2n, or A = Q₀ R₀ is not accurate
        if (found.trace > 2 * static_cast<double>(n)) return result;
        if (result.column < 0) result.column = cholesky<T>(ctx, R2, T(0));
        if (result.column >= 0) return result;
        throw_if_stopped(ctx);
        // R := R₁ R₀;  Q₁ = Q₀ R₁⁻¹, G = Q₁ᵀQ₁
        multiply_upper<T>(ctx, R2, R);
        solve_and_gram<T>(ctx, Q1, Factors{R2}, Q1, R2);
    } else {
        const double kappa = scaled_condition_estimate<T>(ctx, R);
        if (n > 0 && !(kappa * kappa * u < condition_gate * static_cast<double>(n))) return result;
        // Q₁ = A R₁⁻¹, G = Q₁ᵀQ₁
        solve_and_gram<T>(ctx, A, Factors{R}, Q1, R2);
        result.state = State::Improved;
    }
    result.gram_departure = inspect_gram<T>(ctx, R2).departure;
    if (!(result.gram_departure <= certificate)) return result;
    result.column = cholesky<T>(ctx, R2, T(0));
    if (result.column >= 0) return result;
    // R := R₂ R₁
    multiply_upper<T>(ctx, R2, R);
    result.state = State::Certified;
    return result;
}

#define QUOIN_INSTANTIATE(T, D)                                                                                \
    template CholeskyPasses cholesky_passes<T, D>(Context<D>&, bool, MatrixView<const T, D>, MatrixView<T, D>, \
                                                  MatrixView<T, D>, MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
