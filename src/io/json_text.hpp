#pragma once

#include <string>

namespace quoin::io {

/// The text as a JSON string, its quotes included.
std::string json_quoted(const std::string& text);

}  // namespace quoin::io
