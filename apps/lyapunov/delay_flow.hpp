#pragma once

// A delay differential equation, ẋ(t) = f(x(t), x(t − τ)), by the method of steps: the map of its solution over the
// last delay.

#include <algorithm>
#include <vector>

#include "lyapunov/column_blocks.hpp"
#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// The state is x at N + 1 points h = τ/N apart, the oldest first. A step of the Runge-Kutta method of order 4 appends
/// x(t + h) and drops x(t − τ). The cubic through the four oldest points gives x(t − τ + h/2), so that the order is 4.
///
/// A `Field` has `components()`, `operator()(z, dx)` and `jvp(z, Z, dX)` of z = [x(t); x(t − τ)], `flops()` of a column
/// of `jvp`, and `block_columns` as for a `Flow`.
template <class Field>
class DelayFlow : public TangentMap<> {
public:
    DelayFlow(Field field, double tau, Index intervals)
        : field_(std::move(field)), tau_(tau), N_(intervals), h_(tau / static_cast<double>(intervals)) {}

    Index dimension() const override { return field_.components() * (N_ + 1); }
    double step() const override { return h_; }

    void advance(Context<Host>& ctx, Index steps, std::span<double> x, MatrixView<double> X) override {
        const Index d = field_.components();
        const double flops =
            4.0 * static_cast<double>(steps * (X.cols + 1)) * (field_.flops() + 8.0 * static_cast<double>(d));
        std::vector<double> end(x.size());
        for_each_block(ctx, flops, X, field_.block_columns, [&](Index b, MatrixView<double> block) {
            Points points(d, N_, block.cols);
            for (Index i = 0; i <= N_; ++i) {
                std::copy_n(x.data() + d * i, d, points.at(i));
                for (Index j = 0; j < block.cols; ++j) std::copy_n(block.at(d * i, j), d, points.at(i) + d * (1 + j));
            }
            Index oldest = 0;
            for (Index s = 0; s < steps; ++s, ++oldest) {
                if (oldest == N_) {
                    std::copy(points.at(N_), points.at(2 * N_ + 1), points.at(0));
                    oldest = 0;
                }
                append(points, oldest);
            }
            for (Index i = 0; i <= N_; ++i) {
                const double* const point = points.at(oldest + i);
                for (Index j = 0; j < block.cols; ++j) std::copy_n(point + d * (1 + j), d, block.at(d * i, j));
                if (b == 0) std::copy_n(point, d, end.data() + d * i);
            }
        });
        std::copy(end.begin(), end.end(), x.begin());
    }

protected:
    double tau() const { return tau_; }
    Index intervals() const { return N_; }

    Field field_;

private:
    /// 2N + 1 points, each a d×(1 + w) matrix [x X], and the temporaries of a step.
    struct Points {
        Points(Index d_, Index N, Index w_) : d(d_), w(w_), size(d * (1 + w)) {
            values.resize(static_cast<std::size_t>(size * (2 * N + 1)));
            z.resize(static_cast<std::size_t>(2 * size));
            for (const auto array : {&half, &stage, &k1, &k2, &k3, &k4}) array->resize(static_cast<std::size_t>(size));
        }
        double* at(Index i) { return values.data() + size * i; }

        Index d, w, size;
        std::vector<double> values, z, half, stage, k1, k2, k3, k4;
    };

    /// k := f(x, y), and its derivative along [X; Y].
    void slope(Points& p, const double* x, const double* y, std::vector<double>& k) const {
        const Index d = p.d;
        for (Index c = 0; c <= p.w; ++c) {
            std::copy_n(x + d * c, d, p.z.data() + 2 * d * c);
            std::copy_n(y + d * c, d, p.z.data() + 2 * d * c + d);
        }
        field_(p.z.data(), k.data());
        if (p.w > 0) field_.jvp(p.z.data(), {p.z.data() + 2 * d, 2 * d, p.w}, {k.data() + d, d, p.w});
    }

    void append(Points& p, Index oldest) const {
        const double *const y0 = p.at(oldest), *const y1 = p.at(oldest + 1), *const y2 = p.at(oldest + 2),
                            *const y3 = p.at(oldest + 3), *const x = p.at(oldest + N_);
        double* const next = p.at(oldest + N_ + 1);
        const auto each = [&](auto f) {
            for (Index i = 0; i < p.size; ++i) f(i, static_cast<std::size_t>(i));
        };
        each([&](auto i, auto k) { p.half[k] = (5 * y0[i] + 15 * y1[i] - 5 * y2[i] + y3[i]) / 16; });
        slope(p, x, y0, p.k1);
        each([&](auto i, auto k) { p.stage[k] = x[i] + h_ / 2 * p.k1[k]; });
        slope(p, p.stage.data(), p.half.data(), p.k2);
        each([&](auto i, auto k) { p.stage[k] = x[i] + h_ / 2 * p.k2[k]; });
        slope(p, p.stage.data(), p.half.data(), p.k3);
        each([&](auto i, auto k) { p.stage[k] = x[i] + h_ * p.k3[k]; });
        slope(p, p.stage.data(), y1, p.k4);
        each([&](auto i, auto k) { next[i] = x[i] + h_ / 6 * (p.k1[k] + 2 * (p.k2[k] + p.k3[k]) + p.k4[k]); });
    }

    double tau_;
    Index N_;
    double h_;
};

}  // namespace quoin
