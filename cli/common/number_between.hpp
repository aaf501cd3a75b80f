#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace quoin::cli {

/// Returns a validator that refuses text that is no number from `least` to `most`. It refuses NaN, too.
template <class Number>
CLI::Validator number_between(Number least, Number most) {
    return CLI::Validator(
        [least, most](const std::string& text) {
            Number value{};
            const bool fits = CLI::detail::lexical_cast(text, value) && least <= value && value <= most;
            return fits ? std::string() : fmt::format("'{}' is not a number from {} to {}", text, least, most);
        },
        "");
}

}  // namespace quoin::cli
