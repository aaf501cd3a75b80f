#pragma once

// Exponential time differencing of order 4, ETDRK4 (Cox and Matthews 2002), for every device: a step h of v̇ = λv +
// N(v), where each coefficient of v has a λ of its own:
//
//   a = E₂v + QN(v),   b = E₂v + QN(a),   c = E₂a + Q(2N(b) − N(v)),
//   v := Ev + f₁N(v) + f₂(N(a) + N(b)) + f₃N(c),   E = exp(hλ), E₂ = exp(hλ/2)

#include <span>

#include "quoin/matrix.hpp"

namespace quoin {

/// E, E₂, Q, f₁, f₂ and f₃ of n coefficients, n×6; Q and f by means over a circle around hλ (Kassam and Trefethen
/// 2005).
Matrix<double> etdrk4_weights(double h, std::span<const double> lambda);

/// A step with these weights, n×6, in any device's memory.
template <class T>
class Etdrk4 {
public:
    Etdrk4(const T* weights, Index n)
        : E_(weights), E2_(E_ + n), Q_(E2_ + n), f1_(Q_ + n), f2_(f1_ + n), f3_(f2_ + n) {}

    /// Coefficient i of the next argument of N, a, b, c or v at the end of the step, from N of the one before. The
    /// caller keeps v, `rest` = E₂a − QN(v) and `sum`, what v will be, from stage to stage = 0 … 3.
    template <int stage>
    constexpr T next(Index i, T N, T& v, T& rest, T& sum) const {
        if constexpr (stage == 0) {
            const T a = E2_[i] * v + Q_[i] * N;
            rest = E2_[i] * a - Q_[i] * N;
            sum = E_[i] * v + f1_[i] * N;
            return a;
        } else if constexpr (stage == 1) {
            sum += f2_[i] * N;
            return E2_[i] * v + Q_[i] * N;
        } else if constexpr (stage == 2) {
            sum += f2_[i] * N;
            return rest + 2 * Q_[i] * N;
        } else {
            return v = sum + f3_[i] * N;
        }
    }

private:
    const T *E_, *E2_, *Q_, *f1_, *f2_, *f3_;
};

}  // namespace quoin
