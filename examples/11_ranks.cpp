// Rows of one matrix on four ranks, here threads of this process: R, the thin Q and least squares. With MPI's processes
// only the Communicator differs (docs/distributed.md).

#include <cmath>
#include <cstdio>

#include "quoin/quoin.hpp"

using namespace quoin;

const Index n = 8;

/// Rows of A on a rank, 1000·rank of them: none on rank 0. Entry j of the row at t is cos(j t); b is column 3 plus 1/2.
struct Rows {
    explicit Rows(int rank) : A(1000 * rank, n), b(1000 * rank, 1) {
        for (Index i = 0; i < A.rows(); ++i) {
            const double t = 0.5 * rank + 5e-4 * double(i);
            for (Index j = 0; j < n; ++j) A(i, j) = std::cos(double(j) * t);
            b(i, 0) = std::cos(3 * t) + 0.5;
        }
    }
    Matrix<double> A, b;
};

int main() {
    bool good = false;
    run_ranks(4, [&](Communicator& comm) {
        Context<Host> ctx(1);
        const Rows mine(comm.rank());
        const auto f = qr(ctx, comm, mine.A.view());
        const Matrix<double> R = f.r(ctx), Q = f.form_q(ctx);  // R on every rank; this rank's rows of Q

        // QᵀQ, summed over the ranks: 1 on its diagonal
        Matrix<double> square(1, 1);
        square(0, 0) = 0;
        for (Index i = 0; i < Q.rows(); ++i) square(0, 0) += Q(i, n - 1) * Q(i, n - 1);
        comm.all_reduce<double>(ctx, square.view());

        const auto fit = least_squares(ctx, comm, mine.A.view(), mine.b.view());
        if (comm.rank() != 0) return;
        std::printf("%ld x %ld by %s: last column of Q has norm %.15f\n", long(f.rows()), long(f.cols()),
                    to_string(f.report().method), std::sqrt(square(0, 0)));
        std::printf("x_0 = %.6f, x_3 = %.6f, residual norm %.1e\n", fit.X(0, 0), fit.X(3, 0),
                    double(fit.residual_norms[0]));
        good = std::abs(square(0, 0) - 1) < 1e-13 && std::abs(fit.X(0, 0) - 0.5) < 1e-10 &&
               std::abs(fit.X(3, 0) - 1) < 1e-10;
    });
    return good ? 0 : 1;
}
