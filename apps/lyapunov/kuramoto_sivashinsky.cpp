#include <cmath>
#include <numbers>
#include <numeric>

#include "host/block_reflector.hpp"
#include "lyapunov/column_blocks.hpp"
#include "lyapunov/etdrk4.hpp"
#include "lyapunov/fourier_modes.hpp"
#include "lyapunov/normal_numbers.hpp"
#include "lyapunov/require.hpp"
#include "quoin/apps/lyapunov.hpp"

namespace quoin {
namespace {

/// The transforms of a block of vectors are products with the matrices of the real Fourier transform.
class KuramotoSivashinskyMap final : public TangentMap<> {
public:
    KuramotoSivashinskyMap(double length, Index modes, double step)
        : L_(length), M_(modes), G_(3 * modes + 1), rates_(kuramoto_sivashinsky_rates(length, modes)) {
        divergence_ = std::accumulate(rates_.begin(), rates_.end(), 0.);
        set_step(step);
    }

    Index dimension() const override { return 2 * M_; }
    double step() const override { return step_; }
    bool set_step(double h) override {
        step_ = h;
        weights_ = etdrk4_weights(h, rates_);
        return true;
    }
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
        if (S_.cols() == 0) make_transforms();
        const double flops = 16.0 * static_cast<double>(2 * M_ * G_) * static_cast<double>((X.cols + 1) * steps);
        std::vector<double> end(x.size());
        for_each_block(ctx, flops, X, block_columns, [&](Index b, MatrixView<double> block) {
            Stages z(2 * M_, G_, 1 + block.cols);
            std::copy(x.begin(), x.end(), z.v.data());
            for (Index j = 0; j < block.cols; ++j) std::copy_n(block.at(0, j), 2 * M_, z.v.data() + 2 * M_ * (1 + j));
            z.argument = z.v;
            for (Index s = 0; s < steps; ++s) step_once(z);
            for (Index j = 0; j < block.cols; ++j) std::copy_n(z.v.data() + 2 * M_ * (1 + j), 2 * M_, block.at(0, j));
            if (b == 0) std::copy_n(z.v.data(), 2 * M_, end.data());
        });
        std::copy(end.begin(), end.end(), x.begin());
    }

private:
    /// [x X] and the temporaries of a step: coefficients and values on the grid of all 1 + w columns.
    struct Stages {
        Stages(Index n_, Index G, Index cols_) : n(n_), cols(cols_) {
            for (const auto array : {&v, &argument, &N, &rest, &sum}) array->resize(static_cast<std::size_t>(n * cols));
            grid.resize(static_cast<std::size_t>(G * cols));
            half_square.resize(static_cast<std::size_t>(G));
        }
        Index n, cols;
        std::vector<double> v, argument, N, rest, sum, grid, half_square;
    };

    /// Makes the matrices of the transforms from coefficients to values, G×2M, and back, with −∂_ξ.
    void make_transforms() {
        const double root2 = std::numbers::sqrt2;
        D_ = Matrix<double>(2 * M_, G_);
        Matrix<double> S(G_, 2 * M_);
        for (Index k = 1; k <= M_; ++k) {
            const double q = wavenumber(L_, k);
            for (Index g = 0; g < G_; ++g) {
                const double angle = 2 * std::numbers::pi * static_cast<double>(k * g % G_) / static_cast<double>(G_);
                // stored negated: the kernel subtracts
                S(g, 2 * k - 2) = -root2 * std::cos(angle);
                S(g, 2 * k - 1) = -root2 * std::sin(angle);
                // −∂_ξ takes (a, b) to (−qb, qa)
                D_(2 * k - 2, g) = q * root2 * std::sin(angle) / static_cast<double>(G_);
                D_(2 * k - 1, g) = -q * root2 * std::cos(angle) / static_cast<double>(G_);
            }
        }
        S_ = std::move(S);
    }

    /// N(:, c) of columns [first, last): −½(u²)_ξ of the state, column 0, whose values are in grid's column 0 when the
    /// others ask for −(u w)_ξ.
    void nonlinear(Stages& z, Index first, Index last) const {
        const Index n = z.n, w = last - first;
        double *const grid = z.grid.data() + first * G_, *const N = z.N.data() + first * n;
        std::fill_n(grid, G_ * w, 0.);
        host::outer_blocked(G_, w, n, S_.data(), G_, z.argument.data() + first * n, n, grid, G_);
        std::fill_n(N, n * w, 0.);
        if (first == 0) {
            for (Index g = 0; g < G_; ++g) z.half_square[static_cast<std::size_t>(g)] = grid[g] * grid[g] / 2;
            host::outer_blocked(n, Index{1}, G_, D_.data(), n, z.half_square.data(), G_, N, n);
            return;
        }
        const double* const u = z.grid.data();
        for (Index c = 0; c < w; ++c) {
            for (Index g = 0; g < G_; ++g) grid[g + c * G_] *= u[g];
        }
        host::outer_blocked(n, w, G_, D_.data(), n, grid, G_, N, n);
    }

    void step_once(Stages& z) const {
        const Etdrk4<double> rule(weights_.data(), z.n);
        const auto stage = [&]<int s>() {
            nonlinear(z, 0, 1);
            if (z.cols > 1) nonlinear(z, 1, z.cols);
            for (Index c = 0; c < z.cols; ++c) {
                const Index at = c * z.n;
                const double* const N = z.N.data() + at;
                double *const next = z.argument.data() + at, *const v = z.v.data() + at;
                double *const rest = z.rest.data() + at, *const sum = z.sum.data() + at;
                for (Index i = 0; i < z.n; ++i) next[i] = rule.next<s>(i, N[i], v[i], rest[i], sum[i]);
            }
        };
        stage.template operator()<0>();
        stage.template operator()<1>();
        stage.template operator()<2>();
        stage.template operator()<3>();
    }

    double L_;
    Index M_, G_;
    std::vector<double> rates_;
    double step_, divergence_;
    Matrix<double> weights_;
    Matrix<double> S_, D_;  // empty before the first steps
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
