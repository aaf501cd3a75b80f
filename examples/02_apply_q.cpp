// Working with Q without forming it: a projection takes two products with the reflectors.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "quoin/quoin.hpp"

int main() {
    using namespace quoin;
    const Index m = 2000, n = 6;

    // Columns 1, t, t², … on [0, 1]: polynomials of degree below n, sampled.
    Matrix<double> A(m, n), c(m, 1);
    for (Index i = 0; i < m; ++i) {
        const double t = double(i) / double(m - 1);
        for (Index j = 0; j < n; ++j) A(i, j) = std::pow(t, double(j));
        c(i, 0) = std::exp(t);
    }

    Context<Host> ctx;
    const auto f = qr(ctx, A.view());

    // c := Qᵀc, Q the m×m factor: the first n entries are the part in range(A), the others the part orthogonal to it.
    f.apply_q(ctx, Side::Left, Op::Transpose, c.view());
    double outside = 0;
    for (Index i = n; i < m; ++i) outside = std::hypot(outside, c(i, 0));

    // Without the orthogonal part, Q c is the projection of exp on the polynomials: its best approximation.
    std::fill(c.data() + n, c.data() + m, 0.0);
    f.apply_q(ctx, Side::Left, Op::None, c.view());

    double largest = 0, distance = 0;
    for (Index i = 0; i < m; ++i) {
        const double error = std::exp(double(i) / double(m - 1)) - c(i, 0);
        largest = std::max(largest, std::abs(error));
        distance = std::hypot(distance, error);
    }
    std::printf("polynomials of degree %d come within %.1e of exp on [0, 1]\n", int(n - 1), largest);
    std::printf("distance by the norm of QtC's lower part %.6e, by subtraction %.6e\n", outside, distance);

    // Single entries of Q come from q_block, which does not form Q either.
    const Matrix<double> corner = f.q_block(ctx, {0, 3}, {0, 3}), Q = f.form_q(ctx);
    const double difference = std::abs(corner(2, 1) - Q(2, 1));
    return largest < 1e-5 && std::abs(outside - distance) < 1e-12 && difference < 1e-14 ? 0 : 1;
}
