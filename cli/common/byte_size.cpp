#include "byte_size.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "arguments.hpp"

namespace quoin::cli {

namespace {

constexpr double KiB = 1024.0;
constexpr double MiB = 1024.0 * KiB;

using Unit = std::pair<const char*, double>;
constexpr Unit bytes[] = {
    {"", 1},      {"b", 1},     {"kb", 1e3},  {"mb", 1e6},       {"gb", 1e9},
    {"tb", 1e12}, {"kib", KiB}, {"mib", MiB}, {"gib", KiB* MiB}, {"tib", MiB* MiB},
};
constexpr const char* size_units = "B, KB, MB, GB, TB, KiB, MiB, GiB or TiB, for example 1.5GiB";
constexpr Unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

/// A positive number and one of the units.
double parse_quantity(const std::string& argument, const std::string& text, const char* what,
                      std::span<const Unit> units, const char* names) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    const std::string unit = CLI::detail::to_lower(CLI::detail::trim_copy(std::string(end, text.data() + text.size())));
    const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return unit == u.first; });
    if (error != std::errc() || found == units.end() || !(number > 0))
        throw CLI::ValidationError(argument,
                                   fmt::format("'{}' is not a {}: write a positive number and {}", text, what, names));
    return number * found->second;
}

std::string in_powers_of_1000(double bytes) {
    constexpr std::array names = {"B", "KB", "MB", "GB", "TB"};
    std::size_t i = 0;
    for (; bytes >= 999.95 && i + 1 < names.size(); ++i) bytes /= 1000;
    return fmt::format("{:.4g} {}", bytes, names[i]);
}

}  // namespace

Index parse_byte_size(const std::string& argument, const std::string& text) {
    const double size = std::floor(parse_quantity(argument, text, "size", bytes, size_units));
    if (!(size < static_cast<double>(std::numeric_limits<Index>::max())))
        throw CLI::ValidationError(argument, fmt::format("'{}' is more than 2^63 bytes", text));
    return static_cast<Index>(size);
}

double parse_byte_rate(const std::string& argument, const std::string& text) {
    const bool is_rate = text.ends_with("/s");
    return parse_quantity(argument, is_rate ? text.substr(0, text.size() - 2) : text, "rate", bytes,
                          "a unit of bytes, for example 25GB/s");
}

double parse_seconds(const std::string& argument, const std::string& text) {
    return parse_quantity(argument, text, "time", times, "ns, us, ms or s, for example 2us");
}

void add_byte_size_argument(CLI::App& command, const std::string& name, Index& bytes, const std::string& help) {
    add_parsed(
        command, name, "SIZE", [name, &bytes](const std::string& text) { bytes = parse_byte_size(name, text); }, help);
}

std::string format_byte_size(double bytes) {
    constexpr std::array names = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t i = 0;
    for (; bytes >= 1024 && i + 1 < names.size(); ++i) bytes /= 1024;
    return i == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.4g} {}", bytes, names[i]);
}

std::string format_given_size(double bytes) {
    const bool decimal = std::fmod(bytes, 1e6) == 0 || (std::fmod(bytes, 1e3) == 0 && std::fmod(bytes, KiB) != 0);
    return decimal ? in_powers_of_1000(bytes) : format_byte_size(bytes);
}

std::string format_byte_rate(double bytes_per_second) { return in_powers_of_1000(bytes_per_second) + "/s"; }

std::string byte_size_argument(double bytes) {
    return bytes < 16 * MiB ? fmt::format("{:.0f}KiB", std::ceil(bytes / KiB))
                            : fmt::format("{:.0f}MiB", std::ceil(bytes / MiB));
}

}  // namespace quoin::cli
