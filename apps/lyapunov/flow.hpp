#pragma once

// A flow and its variational equation, ẋ = f(x), Ẋ = Df(x) X, by one Runge-Kutta method on [x X]. Its map of X is the
// derivative of its map of x.

#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <vector>

#include "lyapunov/column_blocks.hpp"
#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// A `Field` has `dimension()`, `operator()(x, dx)`, `jvp(x, X, dX)`, `flops()` of a column of `jvp`, and
/// `block_columns`, the columns that a thread integrates with their own copy of x. The copies cost 1/block_columns
/// more, and a block stays in the caches for all steps.
template <class Field>
class Flow : public TangentMap<> {
public:
    Flow(Field field, double step) : field_(std::move(field)), step_(step) {}

    Index dimension() const override { return field_.dimension(); }
    double step() const override { return step_; }
    bool set_step(double h) override { return step_ = h, true; }

    void advance(Context<Host>& ctx, Index steps, std::span<double> x, MatrixView<double> X) override {
        const Index n = dimension();
        // the method's sums read seven vectors a stage
        const double flops =
            6.0 * static_cast<double>(steps * (X.cols + 1)) * (field_.flops() + 14.0 * static_cast<double>(n));
        std::vector<double> end(x.size());
        for_each_block(ctx, flops, X, field_.block_columns, [&](Index b, MatrixView<double> block) {
            const Index w = block.cols;
            std::vector<double> z(static_cast<std::size_t>(n * (1 + w)));
            std::copy(x.begin(), x.end(), z.begin());
            for (Index j = 0; j < w; ++j) std::copy_n(block.at(0, j), n, z.data() + n * (1 + j));

            const auto right_hand_side = [&](const std::vector<double>& from, std::vector<double>& d, double) {
                field_(from.data(), d.data());
                if (w > 0) field_.jvp(from.data(), {from.data() + n, n, w}, {d.data() + n, n, w});
            };
            boost::numeric::odeint::runge_kutta_dopri5<std::vector<double>> stepper;
            for (Index s = 0; s < steps; ++s) stepper.do_step(right_hand_side, z, 0., step_);

            for (Index j = 0; j < w; ++j) std::copy_n(z.data() + n * (1 + j), n, block.at(0, j));
            if (b == 0) std::copy_n(z.begin(), n, end.begin());
        });
        std::copy(end.begin(), end.end(), x.begin());
    }

protected:
    Field field_;

private:
    double step_;
};

}  // namespace quoin
