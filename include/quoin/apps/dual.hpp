#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <utility>
#include <vector>

#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// value + Σ_k ε_k tangent_k, ε_j ε_k = 0: a number with its derivatives in `lanes` directions. A function template
/// that is called with Duals computes f(x) and Df(x) V at once (forward differentiation; Griewank and Walther 2008).
struct Dual {
    static constexpr int lanes = 8;
    double value = 0;
    double tangent[lanes] = {};

    Dual() = default;
    Dual(double constant) : value(constant) {}  // NOLINT(google-explicit-constructor)

    /// Returns g(x), from the value and the derivative of g at x.
    static Dual of(const Dual& x, double value, double derivative) {
        Dual y(value);
        for (int k = 0; k < lanes; ++k) y.tangent[k] = derivative * x.tangent[k];
        return y;
    }
    /// Returns g(x, y), from its value and partial derivatives.
    static Dual of(const Dual& x, const Dual& y, double value, double by_x, double by_y) {
        Dual z(value);
        for (int k = 0; k < lanes; ++k) z.tangent[k] = by_x * x.tangent[k] + by_y * y.tangent[k];
        return z;
    }

    Dual& operator+=(const Dual& y) { return *this = *this + y; }
    Dual& operator-=(const Dual& y) { return *this = *this - y; }
    Dual& operator*=(const Dual& y) { return *this = *this * y; }
    Dual& operator/=(const Dual& y) { return *this = *this / y; }

    friend Dual operator+(const Dual& x) { return x; }
    friend Dual operator-(const Dual& x) { return of(x, -x.value, -1); }
    friend Dual operator+(const Dual& x, const Dual& y) { return of(x, y, x.value + y.value, 1, 1); }
    friend Dual operator-(const Dual& x, const Dual& y) { return of(x, y, x.value - y.value, 1, -1); }
    friend Dual operator*(const Dual& x, const Dual& y) { return of(x, y, x.value * y.value, y.value, x.value); }
    friend Dual operator/(const Dual& x, const Dual& y) {
        const double quotient = x.value / y.value;
        return of(x, y, quotient, 1 / y.value, -quotient / y.value);
    }
    friend bool operator==(const Dual& x, const Dual& y) { return x.value == y.value; }
    friend auto operator<=>(const Dual& x, const Dual& y) { return x.value <=> y.value; }

    friend Dual sin(const Dual& x) { return of(x, std::sin(x.value), std::cos(x.value)); }
    friend Dual cos(const Dual& x) { return of(x, std::cos(x.value), -std::sin(x.value)); }
    friend Dual tan(const Dual& x) {
        const double t = std::tan(x.value);
        return of(x, t, 1 + t * t);
    }
    friend Dual atan(const Dual& x) { return of(x, std::atan(x.value), 1 / (1 + x.value * x.value)); }
    friend Dual sinh(const Dual& x) { return of(x, std::sinh(x.value), std::cosh(x.value)); }
    friend Dual cosh(const Dual& x) { return of(x, std::cosh(x.value), std::sinh(x.value)); }
    friend Dual tanh(const Dual& x) {
        const double t = std::tanh(x.value);
        return of(x, t, 1 - t * t);
    }
    friend Dual exp(const Dual& x) { return of(x, std::exp(x.value), std::exp(x.value)); }
    friend Dual log(const Dual& x) { return of(x, std::log(x.value), 1 / x.value); }
    friend Dual sqrt(const Dual& x) {
        const double root = std::sqrt(x.value);
        return of(x, root, 0.5 / root);
    }
    friend Dual abs(const Dual& x) { return x.value < 0 ? -x : x; }
    friend Dual pow(const Dual& x, double y) {
        return of(x, std::pow(x.value, y), y == 0 ? 0 : y * std::pow(x.value, y - 1));
    }
};

namespace detail {

/// Y := Df(x) X for a function template f(x, y), eight columns at a time.
template <class F>
void jacobian_product(const F& f, const double* x, MatrixView<const double> X, MatrixView<double> Y) {
    std::vector<Dual> from(static_cast<std::size_t>(X.rows)), to(static_cast<std::size_t>(Y.rows));
    for (Index first = 0; first < X.cols; first += Dual::lanes) {
        const Index width = std::min<Index>(Dual::lanes, X.cols - first);
        std::fill(to.begin(), to.end(), Dual());
        for (std::size_t i = 0; i < from.size(); ++i) {
            from[i] = Dual(x[i]);
            for (Index k = 0; k < width; ++k) from[i].tangent[k] = X(static_cast<Index>(i), first + k);
        }
        f(static_cast<const Dual*>(from.data()), to.data());
        for (std::size_t i = 0; i < to.size(); ++i) {
            for (Index k = 0; k < width; ++k) Y(static_cast<Index>(i), first + k) = to[i].tangent[k];
        }
    }
}

}  // namespace detail

/// Makes the flow dx/dt = f(x), with the Jacobian of f by dual numbers. f(x, dx) is a template over the scalar and is
/// called with double and with Dual.
///
///     auto roessler = tangent_map(differentiated_flow({1, 1, 0}, [](const auto* x, auto* d) {
///         d[0] = -x[1] - x[2], d[1] = x[0] + 0.2 * x[1], d[2] = 0.2 + x[2] * (x[0] - 5.7);
///     }));
template <class F>
UserFlow differentiated_flow(std::vector<double> x0, F f, double step = 0.01) {
    return {std::move(x0),
            [f](const double* x, double* dx) { f(x, dx); },
            [f](const double* x, MatrixView<const double> X, MatrixView<double> dX) {
                detail::jacobian_product(f, x, X, dX);
            },
            step,
            {}};
}

/// Makes the delay differential equation dx/dt = f(x(t), x(t − τ)) from f(x, y, dx), likewise.
template <class F>
UserDelayFlow differentiated_delay_flow(std::vector<double> x0, F f, double tau, Index intervals = 100) {
    const auto stacked = [f, d = x0.size()](const auto* z, auto* dx) { f(z, z + d, dx); };
    return {std::move(x0), [stacked](const double* z, double* dx) { stacked(z, dx); },
            [stacked](const double* z, MatrixView<const double> Z, MatrixView<double> dX) {
                detail::jacobian_product(stacked, z, Z, dX);
            },
            tau, intervals};
}

/// Makes the map x := f(x), likewise. f(x, y) writes the next state to y.
template <class F>
UserMap differentiated_map(std::vector<double> x0, F f) {
    return {std::move(x0),
            [f](const double* x, double* y) { f(x, y); },
            [f](const double* x, MatrixView<const double> X, MatrixView<double> Y) {
                detail::jacobian_product(f, x, X, Y);
            },
            {}};
}

}  // namespace quoin
