#pragma once

#include <vector>

#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// A map and its derivative, the vectors all at once. A `Map` has `dimension()`, `operator()(x, y)` and `jvp(x, X, Y)`.
template <class Map>
class DiscreteMap : public TangentMap<> {
public:
    explicit DiscreteMap(Map map) : map_(std::move(map)) {}

    Index dimension() const override { return map_.dimension(); }

    void advance(Context<Host>&, Index steps, std::span<double> x, MatrixView<double> X) override {
        const Index n = dimension(), p = X.cols;
        std::vector<double> from(x.begin(), x.end()), to(x.size());
        std::vector<double> Z(static_cast<std::size_t>(n * p)), Y(Z.size());
        for (Index j = 0; j < p; ++j) std::copy_n(X.at(0, j), n, Z.data() + n * j);
        for (Index s = 0; s < steps; ++s) {
            if (p > 0) map_.jvp(from.data(), {Z.data(), n, p}, {Y.data(), n, p});
            map_(from.data(), to.data());
            std::swap(from, to);
            std::swap(Z, Y);
        }
        std::copy(from.begin(), from.end(), x.begin());
        for (Index j = 0; j < p; ++j) std::copy_n(Z.data() + n * j, n, X.at(0, j));
    }

protected:
    Map map_;
};

}  // namespace quoin
