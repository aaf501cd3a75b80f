// A matrix that never is in memory: R and least squares in one pass over its rows, the thin Q in a second one.

#include <cmath>
#include <cstdio>

#include "quoin/quoin.hpp"

using namespace quoin;

const Index m = 100000, n = 12, block_rows = 7000;

/// Rows [first, last) of A, which would come from a file: cos(j t), t along the rows. b is column 3 plus 1/2.
struct Block {
    Block(Index first, Index last) : A(last - first, n), b(last - first, 1) {
        for (Index i = first; i < last; ++i) {
            const double t = 3.1 * double(i) / double(m);
            for (Index j = 0; j < n; ++j) A(i - first, j) = std::cos(double(j) * t);
            b(i - first, 0) = std::cos(3 * t) + 0.5;
        }
    }
    Matrix<double> A, b;
};

int main() {
    Context<Host> ctx;
    const Index blocks = (m + block_rows - 1) / block_rows;
    const auto read = [](Index k) { return Block(k * block_rows, std::min(m, (k + 1) * block_rows)); };

    // O(n²) memory, however many rows come.
    StreamingR<double> stream(ctx, n, /*right-hand sides*/ 1);
    for (Index k = 0; k < blocks; ++k) {
        const Block block = read(k);
        stream.append(ctx, block.A.view(), block.b.view());
    }
    const auto fit = stream.solve(ctx);
    std::printf("x_0 = %.6f, x_3 = %.6f, residual norm %.1e\n", fit.X(0, 0), fit.X(3, 0), fit.residual_norms[0]);

    // Forward for R; backward, over the same blocks, for the rows of Q.
    StreamingQR<double> factorization(ctx, n);
    for (Index k = 0; k < blocks; ++k) factorization.append(ctx, read(k).A.view());
    double square = 0, error = 0;
    for (Index k = blocks; k-- > 0;) {
        const Block block = read(k);
        const Matrix<double> Q = factorization.q_rows(ctx, block.A.view()), R = factorization.r();
        for (Index i = 0; i < Q.rows(); ++i) square += Q(i, n - 1) * Q(i, n - 1);
        error = std::max(error, residual<double>(ctx, block.A.view(), Q.view(), R.view()));
    }
    std::printf("last column of Q has norm %.15f; |A - QR| / |A| of a block at most %.1e\n", std::sqrt(square), error);
    const bool solved = std::abs(fit.X(0, 0) - 0.5) < 1e-12 && std::abs(fit.X(3, 0) - 1) < 1e-12;
    return solved && std::abs(square - 1) < 1e-13 && error < 1e-13 ? 0 : 1;
}
