#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "json_line.hpp"
#include "quoin/apps/lyapunov.hpp"

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

/// Returns "value ± error (95%: ± half width)".
inline std::string with_errors(const Estimate& estimate) {
    const int decimals = decimals_of(estimate);
    return fmt::format("{} ± {} (95%: ± {})", rounded(estimate.value, decimals), size(estimate.error, decimals),
                       size(estimate.half_width, decimals));
}

/// Prints the line of exponent i, which counts from 0, in a table of exponents.
inline void print_exponent(std::size_t i, const Estimate& exponent) {
    const int decimals = decimals_of(exponent);
    fmt::print("  {:>6}       {:>9} ± {}   95%: ± {}\n", i + 1, rounded(exponent.value, decimals),
               size(exponent.error, decimals), size(exponent.half_width, decimals));
}

/// Adds exponents, errors and half_widths.
inline void add_exponents(JsonLine& json, const std::vector<Estimate>& exponents) {
    std::vector<double> values, errors, half_widths;
    for (const Estimate& e : exponents) {
        values.push_back(e.value), errors.push_back(e.error), half_widths.push_back(e.half_width);
    }
    json.add("exponents", values).add("errors", errors).add("half_widths", half_widths);
}

}  // namespace quoin::cli
