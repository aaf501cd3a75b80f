#pragma once

#include "quoin/matrix.hpp"

namespace quoin {

/// Hénon's map and its derivative, for every device.
struct HenonEquations {
    double a, b;

    Index dimension() const { return 2; }
    constexpr void operator()(const double* x, double* y) const {
        y[0] = 1 - a * x[0] * x[0] + x[1];
        y[1] = b * x[0];
    }
    /// w := DΦ(x) v.
    template <class T>
    constexpr void tangent(const double* x, const T* v, T* w) const {
        w[0] = static_cast<T>(-2 * a * x[0]) * v[0] + v[1];
        w[1] = static_cast<T>(b) * v[0];
    }
    void jvp(const double* x, MatrixView<const double> X, MatrixView<double> Y) const {
        for (Index j = 0; j < X.cols; ++j) tangent(x, X.at(0, j), Y.at(0, j));
    }
};

}  // namespace quoin
