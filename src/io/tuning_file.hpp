#pragma once

// The file of a tuning table: JSON with a checksum.

#include "quoin/tuning.hpp"

namespace quoin::io {

/// Returns the table as JSON. Its last member is the table's id, a CRC-32 of the text before it, which this sets.
std::string tuning_text(TuningTable& table);
/// Returns the table of which `text` is the JSON. Throws UnreadableFile, which names `path`, for any other text.
TuningTable parse_tuning(const std::string& text, const std::string& path);

}  // namespace quoin::io
