#pragma once

#include <string>

namespace quoin::cli {

/// Returns what the text of the paper says of that table or figure, one sentence a line, of
/// bench/papers/published.def.
std::string published_text(const std::string& paper, const std::string& entry);

}  // namespace quoin::cli
