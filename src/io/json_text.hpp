#pragma once

// Strings in JSON.

#include <string>

namespace quoin::io {

/// Returns the text as a JSON string, including its quotes.
std::string json_quoted(const std::string& text);

}  // namespace quoin::io
