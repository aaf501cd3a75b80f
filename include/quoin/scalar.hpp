#pragma once

#include <limits>

namespace quoin {

/// What Quoin knows of a scalar: its real type, its name in messages, the unit roundoff; 2^±safe_exponent, within which sums of
/// squares of up to 2^60 entries neither overflow nor lose bits; whether three products of f16 make one of it.
template <class T>
struct Scalar;

template <>
struct Scalar<float> {
    using Real = float;
    static constexpr const char* name = "f32";
    static constexpr double u = std::numeric_limits<float>::epsilon() / 2;
    static constexpr int safe_exponent = 30;
    static constexpr float safe_entry = 0x1p30f;
    static constexpr bool has_halves = true;
};
template <>
struct Scalar<double> {
    using Real = double;
    static constexpr const char* name = "f64";
    static constexpr double u = std::numeric_limits<double>::epsilon() / 2;
    static constexpr int safe_exponent = 400;
    static constexpr double safe_entry = 0x1p400;
    static constexpr bool has_halves = false;
};

template <class T>
using Real = typename Scalar<T>::Real;

}  // namespace quoin
