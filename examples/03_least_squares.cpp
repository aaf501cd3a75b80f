// Least squares: a line through noisy points, several right-hand sides at once, and what happens when the columns of A
// do not determine the answer.

#include <cmath>
#include <cstdio>
#include <random>

#include "quoin/quoin.hpp"

int main() {
    using namespace quoin;
    const Index m = 5000;

    // b = 3 + 2t with noise, and the same without.
    Matrix<double> A(m, 2), B(m, 2);
    std::mt19937_64 random(1);
    std::normal_distribution<double> noise(0, 0.1);
    for (Index i = 0; i < m; ++i) {
        const double t = double(i) / double(m);
        A(i, 0) = 1;
        A(i, 1) = t;
        B(i, 0) = 3 + 2 * t + noise(random);
        B(i, 1) = 3 + 2 * t;
    }

    Context<Host> ctx;
    const auto fit = least_squares(ctx, A.view(), B.view());
    for (Index j = 0; j < 2; ++j) {
        std::printf("%.4f + %.4f t, residual norm %.3g\n", fit.X(0, j), fit.X(1, j), fit.residual_norms[j]);
    }
    std::printf("condition about %.2g\n", fit.condition);
    const bool noisy = std::abs(fit.X(0, 0) - 3) < 0.02 && std::abs(fit.X(1, 0) - 2) < 0.03;
    const bool exact = std::abs(fit.X(0, 1) - 3) < 1e-13 && std::abs(fit.X(1, 1) - 2) < 1e-13;

    // With fewer equations than unknowns, the solution of least norm: x = (1, 1, 1) solves x₀ + x₁ + x₂ = 3.
    Matrix<double> ones(1, 3), three(1, 1);
    for (Index j = 0; j < 3; ++j) ones(0, j) = 1;
    three(0, 0) = 3;
    const auto shortest = least_squares(ctx, ones.view(), three.view());
    const bool short_enough = std::abs(shortest.X(2, 0) - 1) < 1e-15;

    // Two equal columns: of infinitely many answers the shortest, which has equal coefficients; or an error.
    for (Index i = 0; i < m; ++i) A(i, 1) = A(i, 0);
    const auto shared = least_squares(ctx, A.view(), B.view());
    std::printf("rank %d, %.4f + %.4f\n", static_cast<int>(shared.rank), shared.X(0, 1), shared.X(1, 1));
    const bool equal = shared.rank == 1 && std::abs(shared.X(0, 1) - shared.X(1, 1)) < 1e-13;
    try {
        least_squares(ctx, A.view(), B.view(), {.refuse_deficient = true});
    } catch (const RankDeficient& e) {
        std::printf("%s\n", e.what());
        return noisy && exact && short_enough && equal ? 0 : 1;
    }
    return 1;
}
