#pragma once

#include <limits>

#include "quoin/matrix.hpp"

namespace quoin {

/// What Quoin knows of a scalar: its real type, its name in messages and the unit roundoff.
template <class T>
struct Scalar;

template <>
struct Scalar<float> {
    using Real = float;
    static constexpr const char* name = "f32";
    static constexpr double u = std::numeric_limits<float>::epsilon() / 2;
};
template <>
struct Scalar<double> {
    using Real = double;
    static constexpr const char* name = "f64";
    static constexpr double u = std::numeric_limits<double>::epsilon() / 2;
};

template <class T>
using Real = typename Scalar<T>::Real;

/// A count, for formulas of time and error.
inline double number(Index n) { return static_cast<double>(n); }

}  // namespace quoin
