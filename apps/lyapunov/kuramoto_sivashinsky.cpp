#include <cmath>
#include <complex>
#include <numbers>

#include "host/block_reflector.hpp"
#include "lyapunov/column_blocks.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"
#include "quoin/lyapunov.hpp"

namespace quoin {
namespace {

/// u(ξ) = √2 Σ_k a_k cos(q_k ξ) + b_k sin(q_k ξ), q_k = 2πk/L, k = 1 … M; the state is [a₁ b₁ a₂ b₂ …], so that ‖x‖² is the
/// mean of u². The transforms of a block of vectors are products with the matrices of the real Fourier transform on G >
/// 3M points, where products of two functions have no aliases (Orszag 1971).
class KuramotoSivashinskyMap final : public TangentMap<> {
public:
    KuramotoSivashinskyMap(double length, Index modes, double step)
        : L_(length), M_(modes), G_(3 * modes + 1), step_(step), S_(G_, 2 * M_), D_(2 * M_, G_) {
        for (const auto column : {&E_, &E2_, &Q_, &f1_, &f2_, &f3_}) column->resize(static_cast<std::size_t>(2 * M_));
        const double root2 = std::numbers::sqrt2;
        for (Index k = 1; k <= M_; ++k) {
            const double q = 2 * std::numbers::pi * static_cast<double>(k) / L_;
            for (Index g = 0; g < G_; ++g) {
                const double angle = 2 * std::numbers::pi * static_cast<double>(k * g % G_) / static_cast<double>(G_);
                // stored negated: the kernel subtracts
                S_(g, 2 * k - 2) = -root2 * std::cos(angle);
                S_(g, 2 * k - 1) = -root2 * std::sin(angle);
                // −∂_ξ takes (a, b) to (−qb, qa)
                D_(2 * k - 2, g) = q * root2 * std::sin(angle) / static_cast<double>(G_);
                D_(2 * k - 1, g) = -q * root2 * std::cos(angle) / static_cast<double>(G_);
            }
            coefficients(2 * k - 2, q * q - q * q * q * q);
            coefficients(2 * k - 1, q * q - q * q * q * q);
            divergence_ += 2 * (q * q - q * q * q * q);
        }
    }

    Index dimension() const override { return 2 * M_; }
    double step() const override { return step_; }
    std::string description() const override {
        return fmt::format("kuramoto-sivashinsky length={} modes={} step={}", L_, M_, step_);
    }
    std::vector<double> initial_state(std::uint64_t seed) const override {
        NormalNumbers normal(seed);
        std::vector<double> x(static_cast<std::size_t>(2 * M_));
        for (Index i = 0; i < 2 * M_; ++i)
            x[static_cast<std::size_t>(i)] = normal() / std::pow(1 + static_cast<double>(i) / 2, 2);
        return x;
    }
    std::optional<double> divergence() const override { return divergence_; }
    Index vanishing_exponents() const override { return 2; }  // translations in time and space

    void advance(Context<Host>& ctx, Index steps, std::span<double> x, MatrixView<double> X) override {
        constexpr Index block_columns = 16;
        const double flops = 16.0 * static_cast<double>(2 * M_ * G_) * static_cast<double>((X.cols + 1) * steps);
        std::vector<double> end(x.size());
        for_each_block(ctx, flops, X, block_columns, [&](Index b, MatrixView<double> block) {
            Stages z(2 * M_, G_, 1 + block.cols);
            std::copy(x.begin(), x.end(), z.v.data());
            for (Index j = 0; j < block.cols; ++j) std::copy_n(block.at(0, j), 2 * M_, z.v.data() + 2 * M_ * (1 + j));
            for (Index s = 0; s < steps; ++s) step_once(z);
            for (Index j = 0; j < block.cols; ++j) std::copy_n(z.v.data() + 2 * M_ * (1 + j), 2 * M_, block.at(0, j));
            if (b == 0) std::copy_n(z.v.data(), 2 * M_, end.data());
        });
        std::copy(end.begin(), end.end(), x.begin());
    }

private:
    /// [x X] and what a step needs: coefficients and values on the grid of all 1 + w columns.
    struct Stages {
        Stages(Index n_, Index G, Index cols_) : n(n_), cols(cols_) {
            for (const auto array : {&v, &stage, &a, &Nv, &Na, &Nb}) array->resize(static_cast<std::size_t>(n * cols));
            grid.resize(static_cast<std::size_t>(G * cols));
            half_square.resize(static_cast<std::size_t>(G));
        }
        Index n, cols;
        std::vector<double> v, stage, a, Nv, Na, Nb, grid, half_square;
    };

    /// Of hλ, by means over a circle around it (Kassam and Trefethen 2005).
    void coefficients(Index i, double lambda) {
        using Complex = std::complex<double>;
        constexpr int points = 64;
        const double h = step_, z = h * lambda;
        Complex Q = 0, f1 = 0, f2 = 0, f3 = 0;
        for (int m = 0; m < points; ++m) {
            const Complex r = z + std::polar(1.0, 2 * std::numbers::pi * (m + 0.5) / points), e = std::exp(r);
            Q += (std::exp(r / 2.) - 1.) / r;
            f1 += (-4. - r + e * (4. - 3. * r + r * r)) / (r * r * r);
            f2 += (2. + r + e * (r - 2.)) / (r * r * r);
            f3 += (-4. - 3. * r - r * r + e * (4. - r)) / (r * r * r);
        }
        const std::size_t k = static_cast<std::size_t>(i);
        E_[k] = std::exp(z);
        E2_[k] = std::exp(z / 2);
        Q_[k] = h * Q.real() / points;
        f1_[k] = h * f1.real() / points;
        f2_[k] = 2 * h * f2.real() / points;
        f3_[k] = h * f3.real() / points;
    }

    /// N(:, c) of columns [first, last): −½(u²)_ξ of the state, column 0, whose values are in grid's column 0 when the others
    /// ask for −(u w)_ξ.
    void nonlinear(Stages& z, const std::vector<double>& of, std::vector<double>& N, Index first, Index last) const {
        const Index n = z.n, w = last - first;
        double* const grid = z.grid.data() + first * G_;
        std::fill_n(grid, G_ * w, 0.);
        host::outer_blocked(G_, w, n, S_.data(), G_, of.data() + first * n, n, grid, G_);
        std::fill_n(N.data() + first * n, n * w, 0.);
        if (first == 0) {
            for (Index g = 0; g < G_; ++g) z.half_square[static_cast<std::size_t>(g)] = grid[g] * grid[g] / 2;
            host::outer_blocked(n, Index{1}, G_, D_.data(), n, z.half_square.data(), G_, N.data(), n);
            return;
        }
        const double* const u = z.grid.data();
        for (Index c = 0; c < w; ++c) {
            for (Index g = 0; g < G_; ++g) grid[g + c * G_] *= u[g];
        }
        host::outer_blocked(n, w, G_, D_.data(), n, grid, G_, N.data() + first * n, n);
    }

    void step_once(Stages& z) const {
        const Index n = z.n;
        const auto N = [&](const std::vector<double>& of, std::vector<double>& out) {
            nonlinear(z, of, out, 0, 1);
            if (z.cols > 1) nonlinear(z, of, out, 1, z.cols);
        };
        const auto each = [&](auto formula) {
            for (Index c = 0; c < z.cols; ++c) {
                for (Index i = 0; i < n; ++i) formula(static_cast<std::size_t>(i), static_cast<std::size_t>(i + c * n));
            }
        };
        N(z.v, z.Nv);
        each([&](auto i, auto k) { z.a[k] = E2_[i] * z.v[k] + Q_[i] * z.Nv[k]; });
        N(z.a, z.Na);
        each([&](auto i, auto k) { z.stage[k] = E2_[i] * z.v[k] + Q_[i] * z.Na[k]; });
        N(z.stage, z.Nb);
        each([&](auto i, auto k) { z.stage[k] = E2_[i] * z.a[k] + Q_[i] * (2 * z.Nb[k] - z.Nv[k]); });
        // v := Ev + f₁N(v) + 2f₂(N(a) + N(b)) + f₃N(c)
        each([&](auto i, auto k) { z.v[k] = E_[i] * z.v[k] + f1_[i] * z.Nv[k] + f2_[i] * (z.Na[k] + z.Nb[k]); });
        N(z.stage, z.Nv);
        each([&](auto i, auto k) { z.v[k] += f3_[i] * z.Nv[k]; });
    }

    double L_;
    Index M_, G_;
    double step_, divergence_ = 0;
    Matrix<double> S_, D_;
    std::vector<double> E_, E2_, Q_, f1_, f2_, f3_;
};

}  // namespace

std::unique_ptr<TangentMap<>> tangent_map(const KuramotoSivashinsky& s) {
    require_positive("length", s.length);
    require_positive("step", s.step);
    require_at_least<Index>("modes", s.modes, 0);
    constexpr double wavenumbers = 4.5;
    const double resolved = std::ceil(wavenumbers * s.length / (2 * std::numbers::pi));
    if (s.modes == 0 && resolved > 1e6) {
        throw InvalidArgument(fmt::format("length {} asks for {} modes, more than a million", s.length, resolved));
    }
    const Index modes = s.modes > 0 ? s.modes : std::max<Index>(4, static_cast<Index>(resolved));
    return std::make_unique<KuramotoSivashinskyMap>(s.length, modes, s.step);
}

}  // namespace quoin
