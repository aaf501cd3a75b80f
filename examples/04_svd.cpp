// Singular values of a tall matrix: A = QR reduces the problem to the small R.

#include <cmath>
#include <cstdio>

#include "quoin/quoin.hpp"

int main() {
    using namespace quoin;
    const Index m = 20000, n = 40, rank = 3;

    // A sum of three products of a column and a row, and noise of 1e-6 from a deterministic formula.
    Matrix<double> A(m, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            A(i, j) = 1e-6 * std::sin(double(i * i % 10007) * double(j + 1));
            for (Index l = 1; l <= rank; ++l) {
                A(i, j) += std::cos(double(l * (i + 1)) * 1e-4) * std::cos(double(l * (j + 1)) * 0.1) / double(l * l);
            }
        }
    }

    Context<Host> ctx;
    // The values alone never form Q.
    const auto values = svd(ctx, A.view(), /*vectors=*/false);
    for (Index l = 0; l <= rank; ++l) std::printf("sigma_%d = %.4g\n", int(l), values.s[l]);
    const bool gap = values.s[rank] < 1e-3 * values.s[rank - 1];

    // With vectors, A ≈ U(:, 0:3) diag(s) Vᵀ(0:3, :) to within sigma_3 (Eckart and Young).
    const auto f = svd(ctx, A.view());
    double worst = 0;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            double entry = 0;
            for (Index l = 0; l < rank; ++l) entry += f.U(i, l) * f.s[l] * f.Vt(l, j);
            worst = std::max(worst, std::abs(A(i, j) - entry));
        }
    }
    const double departure = orthogonality<double>(ctx, f.U.view());
    std::printf("rank %d reproduces every entry to %.1e; |I - UtU| = %.1e\n", int(rank), worst, departure);
    return gap && worst <= f.s[rank] && departure < 30 * n * 1.2e-16 ? 0 : 1;
}
