#include "lyapunov/verlet.hpp"

#include <algorithm>
#include <cstdint>

#include "lyapunov/column_blocks.hpp"

namespace quoin {

namespace {

constexpr Index width = couple_width;

/// tile(i, :) := column entries of rows [first, first + rows) of X, the missing columns zero; and back.
void load_tile(MatrixView<const double> X, Index first, Index rows, double* tile) {
    for (Index j = 0; j < width; ++j) {
        for (Index i = 0; i < rows; ++i) tile[i * width + j] = j < X.cols ? X(first + i, j) : 0;
    }
}
void store_tile(const double* tile, Index first, Index rows, MatrixView<double> X) {
    for (Index j = 0; j < X.cols; ++j) {
        for (Index i = 0; i < rows; ++i) X(first + i, j) = tile[i * width + j];
    }
}

}  // namespace

Verlet::Verlet(Index particles, int dimensions, Index fixed, double step)
    : particles_(particles), d_(dimensions), fixed_(fixed), step_(step) {}

std::optional<double> Verlet::energy(std::span<const double> x) const {
    const Index m = d_ * particles_;
    std::vector<double> F(static_cast<std::size_t>(m));
    double energy = forces(x.data(), F.data(), nullptr);
    for (Index i = m; i < 2 * m; ++i) energy += x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(i)] / 2;
    return energy;
}

void Verlet::advance(Context<Host>& ctx, Index steps, std::span<double> x, MatrixView<double> X) {
    constexpr Index steps_ahead = 16;  // whose pairs are kept
    const Index m = d_ * particles_;
    const double h = step_;
    double *const q = x.data(), *const p = x.data() + m;
    std::vector<double> F(static_cast<std::size_t>(m));
    std::vector<Couplings> pairs(static_cast<std::size_t>(X.cols > 0 ? std::min(steps, steps_ahead) + 1 : 0));
    const auto update_forces = [&](Index s) {
        Couplings* const couplings = pairs.empty() ? nullptr : &pairs[static_cast<std::size_t>(s)];
        if (couplings) couplings->clear();
        forces(q, F.data(), couplings);
    };

    for (Index done = 0; done < steps; done += steps_ahead) {
        const Index count = std::min(steps_ahead, steps - done);
        update_forces(0);
        for (Index s = 1; s <= count; ++s) {
            for (Index i = 0; i < m; ++i) {
                p[i] += h / 2 * F[static_cast<std::size_t>(i)];
                q[i] += h * p[i];
            }
            update_forces(s);
            for (Index i = 0; i < m; ++i) p[i] += h / 2 * F[static_cast<std::size_t>(i)];
        }
        if (X.cols == 0) continue;

        double flops = 0;
        for (const Couplings& list : pairs) flops += static_cast<double>(list.size()) * (9 * d_ + 1);
        for_each_block(ctx, flops * static_cast<double>(X.cols), X, width, [&](Index, MatrixView<double> block) {
            const Index rows = m + d_ * fixed_;
            std::vector<double> memory(static_cast<std::size_t>((2 * rows + m) * width + width));
            // lines of the cache, from one border to the next
            double* const dq =
                reinterpret_cast<double*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
            double *const dF = dq + rows * width, *const dp = dF + rows * width;
            load_tile(block, 0, m, dq);
            load_tile(block, m, m, dp);
            const auto tangent_forces = [&](Index s) {
                const Couplings& list = pairs[static_cast<std::size_t>(s)];
                std::fill_n(dF, rows * width, 0.);
                couple(list, d_, dq, dF);
            };
            tangent_forces(0);
            for (Index s = 1; s <= count; ++s) {
                for (Index i = 0; i < m * width; ++i) {
                    dp[i] += h / 2 * dF[i];
                    dq[i] += h * dp[i];
                }
                tangent_forces(s);
                for (Index i = 0; i < m * width; ++i) dp[i] += h / 2 * dF[i];
            }
            store_tile(dq, 0, m, block);
            store_tile(dp, m, m, block);
        });
    }
}

}  // namespace quoin
