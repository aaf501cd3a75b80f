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
    result.column = cholesky<T>(ctx, R, shifted ? T(0) : nu);
    if (result.column >= 0) return result;
    throw_if_stopped(ctx);
    if (shifted) {
        // Q₀ = A R₀⁻¹, G = Q₀ᵀQ₀
        solve_and_gram<T>(ctx, A, Factors{R}, Q1, R2);
        result.state = State::Improved;
        result.column = inspect_gram<T>(ctx, R2).unusable_column;
        if (result.column < 0) result.column = cholesky<T>(ctx, R2, nu);
        if (result.column >= 0) return result;
        throw_if_stopped(ctx);
        // R := R₁ R₀;  Q₁ = Q₀ R₁⁻¹, G = Q₁ᵀQ₁
        multiply_upper<T>(ctx, R2, R);
        solve_and_gram<T>(ctx, Q1, Factors{R2}, Q1, R2);
    } else {
        // ‖Q₁‖ = O(1), and with it A = Q₁ R₁ to O(nu), needs κ²u < 1: otherwise leave A alone
        const double kappa = triangle_condition<T>(ctx, R);
        if (!(kappa * kappa * u < 1)) return result;
        // Q₁ = A R₁⁻¹, G = Q₁ᵀQ₁
        solve_and_gram<T>(ctx, A, Factors{R}, Q1, R2);
        result.state = State::Improved;
    }
    result.gram_departure = inspect_gram<T>(ctx, R2).departure;
    if (!(result.gram_departure <= certificate)) return result;
    result.column = cholesky<T>(ctx, R2, nu);
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
