// Fits the line y = 1 + 2x through five points that lie on it.

#include <cmath>
#include <cstdio>

#include <quoin/quoin.hpp>

int main() {
    quoin::Matrix<double> A(5, 2), B(5, 1);
    for (quoin::Index i = 0; i < 5; ++i) {
        A(i, 0) = 1;
        A(i, 1) = double(i);
        B(i, 0) = 1 + 2 * double(i);
    }
    quoin::Context<quoin::Host> ctx;
    const auto line = quoin::least_squares<double, quoin::Host>(ctx, A.view(), B.view());
    std::printf("quoin %s: y = %g + %gx\n", quoin::version(), line.X(0, 0), line.X(1, 0));
    return std::abs(line.X(0, 0) - 1) < 1e-13 && std::abs(line.X(1, 0) - 2) < 1e-13 ? 0 : 1;
}
