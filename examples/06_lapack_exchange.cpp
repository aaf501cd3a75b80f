// LAPACK's format: hand a factorization over to code written for ?geqrf, and take one back.
//
// LAPACK keeps A = QR as reflectors, Q = H₀H₁…, H_j = I − tau_j v_j v_jᵀ: v_j strictly below the diagonal of column j
// (its leading 1 is not stored), R on and above the diagonal, and the scalars tau. What ?ormqr and ?orgqr read is this.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "quoin/quoin.hpp"

using namespace quoin;

/// c := Qᵀc as ?ormqr computes it, straight from V and tau.
void apply_reflectors(const LapackQR<double>& f, Matrix<double>& c) {
    const Index m = f.V_R.rows();
    for (Index j = 0; j < f.tau.rows(); ++j) {
        double product = c(j, 0);  // v_jᵀc
        for (Index i = j + 1; i < m; ++i) product += f.V_R(i, j) * c(i, 0);
        c(j, 0) -= f.tau(j, 0) * product;
        for (Index i = j + 1; i < m; ++i) c(i, 0) -= f.tau(j, 0) * product * f.V_R(i, j);
    }
}

int main() {
    const Index m = 3000, n = 20;
    Matrix<double> A(m, n), c(m, 1), d(m, 1);
    for (Index i = 0; i < m; ++i) {
        for (Index j = 0; j < n; ++j) A(i, j) = std::cos(double((i + 1) * (j + 1))) + (i % n == j ? 1 : 0);
        c(i, 0) = d(i, 0) = std::sin(double(i));
    }

    Context<Host> ctx;
    Options options;
    options.q = QForm::Reflectors;  // LAPACK's format from the start: to_lapack then only moves memory
    LapackQR<double> exported = to_lapack(ctx, qr(ctx, A.view(), options));
    apply_reflectors(exported, c);

    // Factors of ?geqrf are imported in this way, too.
    const QR<double> imported = from_lapack(ctx, std::move(exported));
    imported.apply_q(ctx, Side::Left, Op::Transpose, d.view());

    double difference = 0;
    for (Index i = 0; i < m; ++i) difference = std::max(difference, std::abs(c(i, 0) - d(i, 0)));
    const double error = residual<double>(ctx, A.view(), imported.form_q(ctx).view(), imported.r().view());
    std::printf("Qtc by LAPACK's formula and by Quoin differ by %.1e; |A - QR| / |A| = %.1e\n", difference, error);
    return difference < 1e-13 && error < 10 * n * 1.2e-16 ? 0 : 1;
}
