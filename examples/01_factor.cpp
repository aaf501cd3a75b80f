// A = QR of a tall matrix: factor, look at R, form the thin Q, and measure how good both are.

#include <cstdio>
#include <random>

#include "quoin/quoin.hpp"

int main() {
    using namespace quoin;
    const Index m = 10000, n = 50;

    // Matrices are column-major: A(i, j) is A.data()[i + j·A.ld()].
    Matrix<double> A(m, n);
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) A(i, j) = normal(random);
    }

    Context<Host> ctx;  // every core; Context<Host>(2) would take two

    // Prints how Quoin will factor this shape.
    std::puts(to_string(plan_qr<double>(ctx, m, n)).c_str());

    const auto f = qr(ctx, A.view());        // A stays as it is
    const Matrix<double> R = f.r();          // 50×50, upper triangular
    const Matrix<double> Q = f.form_q(ctx);  // 10000×50, orthonormal columns
    std::printf("method %s, %.2g s, r_00 = %.4f\n", to_string(f.report().method), f.report().seconds, R(0, 0));

    const double departure = orthogonality<double>(ctx, Q.view());
    const double error = residual<double>(ctx, A.view(), Q.view(), R.view());
    std::printf("|I - QtQ| = %.1e, |A - QR| / |A| = %.1e\n", departure, error);

    // Both are a modest multiple of n·u, u = 1.1e-16, whatever A is.
    return departure < 10 * n * 1.2e-16 && error < 10 * n * 1.2e-16 ? 0 : 1;
}
