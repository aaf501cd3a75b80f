// Lyapunov exponents: how fast nearby orbits of a dynamical system part. The state and its tangent vectors go ahead
// together; every few steps the vectors are factored, Z = QR, and log|r_ii| averaged over time are the exponents.

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "quoin/apps/dual.hpp"
#include "quoin/apps/lyapunov.hpp"

using namespace quoin;

namespace {

void print(const char* name, const LyapunovSpectrum& f) {
    std::printf("%s:", name);
    for (const Estimate& exponent : f.exponents) std::printf(" %.3f ± %.3f", exponent.value, exponent.error);
    std::printf("; sum %.6f, Kaplan-Yorke dimension %.3f\n", f.sum.value, f.kaplan_yorke.value);
}

bool agrees(const Estimate& estimate, double known) {
    return std::abs(estimate.value - known) <= 4 * estimate.error + 0.01;
}

}  // namespace

int main(int argc, char** argv) {
    const double time = argc > 1 ? std::atof(argv[1]) : 1000;
    Context<Host> ctx;

    // a system that Quoin has
    auto lorenz = tangent_map(Lorenz63{.sigma = 10, .rho = 28, .beta = 8. / 3});
    const LyapunovSpectrum known = lyapunov_spectrum(ctx, *lorenz, {.time = time});
    print("Lorenz", known);
    bool good =
        agrees(known.exponents[0], 0.906) && agrees(known.exponents[1], 0) && agrees(known.exponents[2], -14.572);
    // the divergence of the flow is constant, −(σ + 1 + β), and is the sum
    good = good && std::abs(known.sum.value - *lorenz->divergence()) < 1e-3;

    // Rössler's flow, written down as a template over the scalar: dual numbers pass through it for its Jacobian
    auto roessler = tangent_map(differentiated_flow(
        {1, 1, 0},
        [](const auto* x, auto* d) {
            d[0] = -x[1] - x[2];
            d[1] = x[0] + 0.2 * x[1];
            d[2] = 0.2 + x[2] * (x[0] - 5.7);
        },
        /*step=*/0.02));
    const LyapunovSpectrum own = lyapunov_spectrum(ctx, *roessler, {.time = time});
    print("Rössler", own);
    good = good && agrees(own.exponents[0], 0.0714) && agrees(own.exponents[2], -5.39);

    // any method of QR gives the same spectrum
    LyapunovOptions options{.time = time / 10};
    for (const Method method : {Method::BlockedHouseholder, Method::TSQR, Method::CholeskyQR2}) {
        options.qr.method = method;
        const LyapunovSpectrum f = lyapunov_spectrum(ctx, *lorenz, options);
        print(to_string(method), f);
        good = good && agrees(f.exponents[0], 0.906);
    }
    return good ? 0 : 1;
}
