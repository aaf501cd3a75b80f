#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "quoin/plan_fields.hpp"

namespace quoin::cli {

/// One JSON object on one line, keys in the order of the calls.
class JsonLine {
public:
    JsonLine& add(const char* key, const char* value);
    JsonLine& add(const char* key, const std::string& value);
    JsonLine& add(const char* key, std::int64_t value);
    JsonLine& add(const char* key, int value) { return add(key, std::int64_t{value}); }
    JsonLine& add(const char* key, bool value);
    /// Adds `value` with the digits that read back to the same bits; null if it is not finite.
    JsonLine& add(const char* key, double value);
    JsonLine& add(const char* key, const std::vector<double>& values);
    /// A quantity whose negative values mean "not measured": null then.
    JsonLine& add_measured(const char* key, double value);
    /// A text that may be unknown: null for "".
    JsonLine& add_known(const char* key, const std::string& value);
    JsonLine& add_null(const char* key);
    JsonLine& add(const PlanField& field);
    JsonLine& add(const char* key, const JsonLine& object);
    JsonLine& add(const char* key, const std::vector<JsonLine>& objects);

    /// The object, without an end of line.
    std::string text() const;
    /// Keys, and values as JSON has them.
    const std::vector<std::pair<std::string, std::string>>& members() const { return members_; }

    /// Writes the line to stdout at once.
    void print() const;

private:
    JsonLine& raw(const char* key, const std::string& value);
    std::vector<std::pair<std::string, std::string>> members_;
};

}  // namespace quoin::cli
