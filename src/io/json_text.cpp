// Escapes a text for JSON.

#include "io/json_text.hpp"

#include <fmt/format.h>

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

}  // namespace quoin::io
