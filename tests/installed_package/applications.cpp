// Takes a rank-one matrix with one wrong entry apart, and finds that an orbit of the Lorenz system is chaotic.

#include <cmath>

#include <quoin/apps/lyapunov.hpp>
#include <quoin/apps/robust_pca.hpp>

int main() {
    quoin::Context<quoin::Host> ctx;
    quoin::Matrix<double> M(40, 20);
    for (quoin::Index j = 0; j < 20; ++j)
        for (quoin::Index i = 0; i < 40; ++i) M(i, j) = 1;
    M(3, 4) = 9;
    const auto parts = quoin::robust_pca<double, quoin::Host>(ctx, M.view());
    const auto system = quoin::tangent_map(quoin::Lorenz63{});
    const auto f = quoin::lyapunov_spectrum(ctx, *system, {.time = 50, .transient = 10, .alignment = 10});
    return std::abs(parts.S(3, 4) - 8) < 1e-3 && f.exponents[0].value > 0.5 ? 0 : 1;
}
