#include "lyapunov/etdrk4.hpp"

#include <cmath>
#include <complex>
#include <numbers>

namespace quoin {

Matrix<double> etdrk4_weights(double h, std::span<const double> lambda) {
    using Complex = std::complex<double>;
    constexpr int points = 64;
    Matrix<double> weights(static_cast<Index>(lambda.size()), 6);
    for (Index i = 0; i < weights.rows(); ++i) {
        const double z = h * lambda[static_cast<std::size_t>(i)];
        Complex Q = 0, f1 = 0, f2 = 0, f3 = 0;
        for (int m = 0; m < points; ++m) {
            const Complex r = z + std::polar(1.0, 2 * std::numbers::pi * (m + 0.5) / points), e = std::exp(r);
            Q += (std::exp(r / 2.) - 1.) / r;
            f1 += (-4. - r + e * (4. - 3. * r + r * r)) / (r * r * r);
            f2 += (2. + r + e * (r - 2.)) / (r * r * r);
            f3 += (-4. - 3. * r - r * r + e * (4. - r)) / (r * r * r);
        }
        weights(i, 0) = std::exp(z);
        weights(i, 1) = std::exp(z / 2);
        weights(i, 2) = h * Q.real() / points;
        weights(i, 3) = h * f1.real() / points;
        weights(i, 4) = 2 * h * f2.real() / points;
        weights(i, 5) = h * f3.real() / points;
    }
    return weights;
}

}  // namespace quoin
