#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <type_traits>

namespace quoin::cli {

/// Adds the option `name` KIND, whose value goes to `target`.
template <class Target>
CLI::Option* add_value(CLI::App& command, const std::string& name, const std::string& kind, Target& target,
                       const std::string& description) {
    return command.add_option(name, target, description)->type_name(kind);
}

/// Adds the option `name` KIND: a number from `least` to `most`, which goes to `target`. It refuses NaN, too.
template <class Number>
CLI::Option* add_number(CLI::App& command, const std::string& name, const std::string& kind, Number& target,
                        std::type_identity_t<Number> least, std::type_identity_t<Number> most,
                        const std::string& description) {
    const auto refuse = [least, most](const std::string& text) {
        Number value{};
        const bool fits = CLI::detail::lexical_cast(text, value) && least <= value && value <= most;
        return fits ? std::string() : fmt::format("'{}' is not a number from {} to {}", text, least, most);
    };
    return add_value(command, name, kind, target, description)->check(refuse, "");
}

}  // namespace quoin::cli
