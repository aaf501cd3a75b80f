// CholeskyQR2 (Yamamoto, Nakatsukasa, Yanagisawa, Fukaya 2015), shifted CholeskyQR3 (Fukaya, Kannan, Nakatsukasa,
// Yamamoto, Yanagisawa 2020), and CholeskyQR in mixed precision (Yamazaki, Tomov, Dongarra 2015), whose one pass suffices
// where the Gram matrix is known to much less than u. Every step decides where it runs whether the next may be taken; the
// host asks once, at the end.

#include <algorithm>
#include <array>
#include <cmath>

#include "algorithms/factorization.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// Steps of a chain, in order.
enum Step { First, Second, Last };

}  // namespace

template <class T, class D>
CholeskyPasses<T, D> cholesky_passes(Context<D>& ctx, bool shifted, bool last, MatrixView<const T, D> A,
                                     MatrixView<T, D> Q1, MatrixView<T, D> R, const NextStep<T, D>& next,
                                     const GramOverRanks<T, D>& over_ranks) {
    using State = typename CholeskyPasses<T, D>::State;
    using S = Sum<T, D>;
    using Factors = std::array<MatrixView<const S, D>, 1>;
    const double u = Scalar<T>::u;
    const Index n = A.cols;
    const double nu = static_cast<double>(n) * u;
    CholeskyPasses<T, D> result;
    if (n == 0) {
        result.state = State::Certified;
        result.gram_departure = 0;
        return result;
    }
    const Span span(ctx, "Gram passes");
    Matrix<S, D> first(ctx, n, n), second(ctx, n, n);
    const auto R1 = first.view(), R2 = second.view();
    Matrix<Certificate, D> state(ctx, 1, 1);
    const CertificateView<D> certificate = state.view();

    using IsLast = typename GramOverRanks<T, D>::IsLast;
    const IsLast is_never_last = [](const Certificate&) { return false; };
    const auto factor = [&](MatrixView<S, D> G, GramDemands demands, const IsLast& is_last) {
        if (over_ranks.factor) return over_ranks.factor(G, demands, certificate, is_last);
        factor_gram<T>(ctx, G, demands, G, certificate);
    };
    // what follows the last Cholesky factor Y: R is known, and A = Q₁ or Q₁ Y
    const auto conclude = [&](MatrixView<const T, D> B, MatrixView<const S, D> Y) {
        if (!next) request_certificate(ctx, certificate);
        if (last) solve_and_gram<T>(ctx, B, Factors{Y}, Q1, {}, certificate);
        if (next) next(Y, certificate);
        return receive_certificate(ctx, certificate);
    };
    // the chain is through, or all of it but what was to come next
    const auto is_through = [](const Certificate& found) {
        return !found.refused() || found.reason == Certificate::Growth;
    };
    const auto certified = [&](const Certificate& found, double departure, Matrix<S, D>& Y) {
        result.state = State::Certified;
        result.next_refused = found.refused();
        result.gram_departure = departure;
        if (!last) result.R2 = std::move(Y);
    };
    // G = AᵀA
    solve_and_gram<T>(ctx, A, {}, {}, R1);
    throw_if_stopped(ctx);
    if (shifted) {
        // R₀ = chol(G + s diag(G)): the shift relative to each column makes it independent of the columns' scales
        factor(R1, {.step = First, .shift = 10 * nu}, is_never_last);
        // Q₀ = A R₀⁻¹, G = Q₀ᵀQ₀; ‖Q₀‖_F² = tr G <= 2n, or A = Q₀ R₀ is not accurate
        solve_and_gram<T>(ctx, A, Factors{R1}, Q1, R2, certificate);
        factor(R2, {.step = Second, .most_trace = 2 * static_cast<double>(n)}, is_never_last);
        // R₁ := R₁ R₀;  Q₁ = Q₀ R₁⁻¹, G = Q₁ᵀQ₁
        multiply_upper<S>(ctx, R2, R1, R1, certificate);
        solve_and_gram<T>(ctx, Q1, Factors{R2}, Q1, R2, certificate);
    } else {
        GramPrecision known = gram_precision<T>(ctx, over_ranks.factor ? over_ranks.rows : A.rows, n);
        known.longest_sum += over_ranks.levels;
        const double most_condition = most_gram_condition(n, known);
        // ‖I − Q₁ᵀQ₁‖_F <= κ_F(R₁D)² (γ + γ_{n+1}), γ of the Gram matrix and γ_{n+1} of its factor: up to this κ_F one pass
        // suffices; κ_F >= n
        const double gamma = (known.longest_sum + static_cast<double>(n) + 1) * known.u;
        const double one_pass_condition =
            std::min({most_condition, std::sqrt(nu / 2 / gamma), known.most_condition_of_solve});
        const bool one_pass = static_cast<double>(n) < one_pass_condition;
        factor(R1, {.step = First, .most_condition = one_pass ? one_pass_condition : most_condition},
               [one_pass](const Certificate& found) { return one_pass && !found.refused(); });
        if (one_pass) {
            // Q = A R₁⁻¹, R = R₁; without the last pass Q₁ = A, R₂ = R₁
            multiply_upper<S, T>(ctx, {}, R1, R, certificate);
            const Certificate found = conclude(A, R1);
            if (is_through(found)) {
                certified(found, found.condition * found.condition * gamma, first);
                return result;
            }
            if (found.reason == Certificate::Condition && found.condition < most_condition)
                write_certificate(ctx, certificate, {});
        }
        // Q₁ = A R₁⁻¹, G = Q₁ᵀQ₁
        solve_and_gram<T>(ctx, A, Factors{R1}, Q1, R2, certificate);
    }
    factor(R2, {.step = Last, .most_departure = most_final_departure}, [](const Certificate&) { return true; });
    // R := R₂ R₁;  Q = Q₁ R₂⁻¹
    multiply_upper<S, T>(ctx, R2, R1, R, certificate);
    const Certificate found = conclude(Q1, R2);
    if (is_through(found)) {
        certified(found, found.departure, second);
        return result;
    }
    result.column = found.column;
    if (found.step == First) {
        result.state = found.reason == Certificate::Unusable ? State::Unusable : State::Refused;
    } else {
        result.state = State::Improved;
        multiply_upper<S, T>(ctx, {}, R1, R);
        if (found.step == Last) result.gram_departure = found.departure;
    }
    return result;
}

#define QUOIN_INSTANTIATE(T, D) template decltype(cholesky_passes<T, D>) cholesky_passes<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
