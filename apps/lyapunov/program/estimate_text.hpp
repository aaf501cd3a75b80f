#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "quoin/lyapunov.hpp"

namespace quoin::cli {

/// Returns the decimals that show two digits of the interval's half width, at least four and at most eight.
inline int decimals_of(const Estimate& estimate) {
    if (!(estimate.half_width > 0)) return 4;
    return std::clamp(static_cast<int>(std::ceil(-std::log10(estimate.half_width))) + 1, 4, 8);
}

/// Returns a value with `decimals`, without a sign if all digits are 0.
inline std::string rounded(double value, int decimals) {
    return fmt::format("{:.{}f}", std::abs(value) < std::pow(10., -decimals) / 2 ? 0 : value, decimals);
}
/// Returns an error with `decimals`, or its first digit with an exponent if all digits would be 0.
inline std::string size(double error, int decimals) {
    return error > 0 && error < std::pow(10., -decimals) / 2 ? fmt::format("{:.0e}", error) : rounded(error, decimals);
}

}  // namespace quoin::cli
