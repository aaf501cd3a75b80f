#pragma once

// Values and objects in JSON.

#include <string>
#include <utility>
#include <vector>

#include "quoin/plan_fields.hpp"

namespace quoin::io {

/// Returns the text as a JSON string, including its quotes.
std::string json_quoted(const std::string& text);
/// Returns `value` with the fewest digits that read back to the same bits, at most 17; null if it is not finite.
std::string json_number(double value);
/// Returns the field's value; null for none.
std::string json_value(const PlanField& field);
/// Returns an object on one line, without an end of line. Members are keys and values as JSON has them.
std::string json_object(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace quoin::io
