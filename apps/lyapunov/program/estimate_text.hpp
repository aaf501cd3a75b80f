#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "quoin/lyapunov.hpp"

namespace quoin::cli {

/// Four decimals, and as many as half the width of the interval needs for two digits, up to eight.
inline int decimals_of(const Estimate& estimate) {
    if (!(estimate.half_width > 0)) return 4;
    return std::clamp(static_cast<int>(std::ceil(-std::log10(estimate.half_width))) + 1, 4, 8);
}

/// A value with `decimals`, and no sign if these are all 0.
inline std::string rounded(double value, int decimals) {
    return fmt::format("{:.{}f}", std::abs(value) < std::pow(10., -decimals) / 2 ? 0 : value, decimals);
}
/// An error with `decimals`, or with its first digit if these are all 0.
inline std::string size(double error, int decimals) {
    return error > 0 && error < std::pow(10., -decimals) / 2 ? fmt::format("{:.0e}", error) : rounded(error, decimals);
}

}  // namespace quoin::cli
