// Many small matrices at once: a batch in one array, matrices of different shapes, least squares, and a matrix with NaN
// among others.

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "quoin/quoin.hpp"

int main() {
    using namespace quoin;
    const Index m = 16, n = 4, count = 1000;
    Matrix<double> A(m, n * count), B(m, count);  // matrix b: columns bn to bn + n
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (Index i = 0; i < m * n * count; ++i) A.data()[i] = normal(random);
    // the sum of the columns: every solution is (1, 1, 1, 1)
    for (Index b = 0; b < count; ++b) {
        for (Index i = 0; i < m; ++i) {
            B(i, b) = 0;
            for (Index j = 0; j < n; ++j) B(i, b) += A(i, b * n + j);
        }
    }
    const BatchView<const double> matrices(A.data(), m, n, m, m * n, count), right(B.data(), m, 1, m, m, count);

    Context<Host> ctx;
    const auto f = qr(ctx, matrices);
    Batch<double> R = f.r(ctx), Q = f.form_q(ctx);
    std::printf("R(0, 0) of matrix 7: %.4f; the norm of its first column is its magnitude\n", R[7](0, 0));

    auto fit = least_squares(ctx, matrices, right);
    double worst = 0;
    for (Index b = 0; b < count; ++b) {
        for (Index j = 0; j < n; ++j) worst = std::max(worst, std::abs(fit.X[b](j, 0) - 1));
    }
    std::printf("%lld least squares problems: x within %.1e of 1\n", static_cast<long long>(count), worst);

    // Matrices may have any shape and address: two of 16×4 and one of 16×9, in memory of another batch.
    const BatchView<const double> mixed({{A.data(), m, n}, {A.data() + m * n, m, 9}, {A.data() + m * 100, m, n}});
    const Batch<double> orthonormal = orthonormalize(ctx, mixed);

    // A matrix with NaN is named, or does no harm to the others.
    A(2, 7 * n + 1) = std::numeric_limits<double>::quiet_NaN();
    Options lenient;
    lenient.check_finite = false;
    const Batch<double> others = qr(ctx, matrices, lenient).r(ctx);
    const bool unharmed = others[8](0, 0) == R[8](0, 0) && std::isnan(others[7](1, 1));
    try {
        qr(ctx, matrices);
    } catch (const NonFiniteEntry& e) {
        std::printf("%s\n", e.what());
        return worst < 1e-10 && orthonormal[1].cols == 9 && unharmed ? 0 : 1;
    }
    return 1;
}
