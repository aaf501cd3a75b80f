// Writes texts, numbers and objects as JSON.

#include "io/json_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace quoin::io {

std::string json_quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (static_cast<unsigned char>(c) < 0x20)
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            out += c;
    }
    return out + '"';
}

std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string json_value(const PlanField& field) {
    const auto text = []<class V>(const V& value) -> std::string {
        if constexpr (std::is_same_v<V, std::monostate>)
            return "null";
        else if constexpr (std::is_same_v<V, std::string>)
            return json_quoted(value);
        else if constexpr (std::is_same_v<V, double>)
            return json_number(value);
        else
            return fmt::format("{}", value);
    };
    return std::visit(text, field.value);
}

std::string json_object(const std::vector<std::pair<std::string, std::string>>& members) {
    std::string text;
    for (const auto& [key, value] : members)
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", json_quoted(key), value);
    return "{" + text + "}";
}

}  // namespace quoin::io
