// Communication-avoiding GMRES (Hoemmen 2010) of convection and diffusion on a grid, beside classical GMRES: s products
// with A at a time, whose vectors Quoin orthogonalizes as one block. A block is projected from the basis by two large
// products and factored by CholeskyQR2. Classical GMRES is the same with s = 1.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "quoin/quoin.hpp"

using namespace quoin;

constexpr Index side = 120, m = side * side;  // a square grid, with u = 0 around it
constexpr double east = 0.3, north = 0.2;     // velocities times the mesh width over twice the diffusion
// A has its eigenvalues in centre ± half
constexpr double centre = 4, half = 4;

/// y := A x for −Δu + v·∇u by central differences. A is not symmetric.
void multiply(const double* x, double* y) {
    for (Index i = 0; i < side; ++i) {
        for (Index j = 0; j < side; ++j) {
            const double* const u = x + i * side + j;
            y[i * side + j] = 4 * u[0] - (j > 0 ? (1 + east) * u[-1] : 0) - (j + 1 < side ? (1 - east) * u[1] : 0) -
                              (i > 0 ? (1 + north) * u[-side] : 0) - (i + 1 < side ? (1 - north) * u[side] : 0);
        }
    }
}

double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
}

struct Solution {
    std::vector<double> x = std::vector<double>(m, 0.0);
    Index products = 0, blocks = 0;
    double residual = 1, seconds = 0;  // ‖b − A x‖/‖b‖
};

/// Solves A x = b by GMRES with restarts, a basis of `blocks` blocks of s vectors.
Solution gmres(Context<Host>& ctx, const std::vector<double>& b, Index s, Index blocks, double tolerance) {
    const auto start = std::chrono::steady_clock::now();
    Options options;
    options.method = ClassicalGramSchmidt{s, Reorthogonalization::Always, GramSchmidtPanel::CholeskyQR2};
    Solution f;
    std::vector<double> residual = b, product(m);
    const double norm_of_b = norm(b);
    while (f.residual > tolerance && f.products < 5000) {
        const Index n = s * blocks;
        GramSchmidt<double> basis(ctx, m, n + 1, options);
        basis.append(ctx, {residual.data(), m, 1, m});
        // K: vectors that span the Krylov space, Q S. A K = Q H.
        Matrix<double> S(n + 1, n), H(n + 1, n), W(m, s);
        for (Matrix<double>* const A : {&S, &H}) std::fill_n(A->data(), (n + 1) * n, 0.0);
        for (Index k = 0; k < n; k += s) {
            // Chebyshev polynomials of A times q_k: w₁ = (A − c) q_k / h, w_{j+1} = 2 (A − c) w_j / h − w_{j−1}
            const double *before = nullptr, *last = basis.q().at(0, k);
            for (Index j = 0; j < s; ++j) {
                double* const next = W.view().at(0, j);
                multiply(last, next);
                for (Index i = 0; i < m; ++i) {
                    next[i] = (j == 0 ? 1 : 2) / half * (next[i] - centre * last[i]) - (before ? before[i] : 0);
                }
                before = last;
                last = next;
            }
            basis.append(ctx, W.view());
            f.products += s;
            ++f.blocks;
            // the coefficients of q_k, w₁, …, w_s in Q
            const auto coefficient = [&](Index i, Index j) { return j == 0 ? double(i == k) : basis.r()(i, k + j); };
            for (Index j = 0; j < s; ++j) {
                for (Index i = 0; i <= k + s; ++i) {
                    // A q_k = c q_k + h w₁, A w_j = c w_j + h/2 (w_{j+1} + w_{j−1})
                    S(i, k + j) = coefficient(i, j);
                    H(i, k + j) = centre * S(i, k + j) + (j == 0 ? half : half / 2) * coefficient(i, j + 1) +
                                  (j == 0 ? 0 : half / 2 * coefficient(i, j - 1));
                }
            }
        }
        // min ‖r − A K y‖ = ‖r₁₁ e₁ − H y‖, x := x + K y
        Matrix<double> rhs(n + 1, 1);
        std::fill_n(rhs.data(), n + 1, 0.0);
        rhs(0, 0) = basis.r()(0, 0);
        const auto fit = least_squares(ctx, H.view(), rhs.view());
        for (Index l = 0; l <= n; ++l) {
            double coefficient = 0;
            for (Index j = 0; j < n; ++j) coefficient += S(l, j) * fit.X(j, 0);
            for (Index i = 0; i < m; ++i) f.x[i] += basis.q()(i, l) * coefficient;
        }
        multiply(f.x.data(), product.data());
        for (Index i = 0; i < m; ++i) residual[i] = b[i] - product[i];
        f.residual = norm(residual) / norm_of_b;
    }
    f.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return f;
}

int main() {
    Context<Host> ctx;
    std::vector<double> exact(m), b(m);
    for (Index i = 0; i < m; ++i) exact[i] = std::sin(0.3 * double(i)) + 1;
    multiply(exact.data(), b.data());
    const Solution classical = gmres(ctx, b, 1, 60, 1e-9), avoiding = gmres(ctx, b, 12, 5, 1e-9);
    for (const auto& [name, f] : {std::pair{"classical", &classical}, {"s = 12", &avoiding}}) {
        std::printf("%-10s %4ld products, %4ld blocks orthogonalized, residual %.1e, %.2f s\n", name,
                    static_cast<long>(f->products), static_cast<long>(f->blocks), f->residual, f->seconds);
    }
    std::vector<double> error(m);
    for (Index i = 0; i < m; ++i) error[i] = avoiding.x[i] - exact[i];
    std::printf("error %.1e\n", norm(error) / norm(exact));
    // the same spaces, so the same restarts, and a twelfth of the reductions
    const bool as_classical = avoiding.products == classical.products && avoiding.blocks * 12 == classical.blocks;
    return avoiding.residual <= 1e-9 && as_classical && norm(error) <= 1e-6 * norm(exact) ? 0 : 1;
}
