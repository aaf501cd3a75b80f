#include "json_line.hpp"

#include <fmt/format.h>

#include "io/json_text.hpp"
#include "output_files.hpp"

namespace quoin::cli {

JsonLine& JsonLine::raw(const char* key, const std::string& value) {
    members_.emplace_back(key, value);
    return *this;
}

std::string JsonLine::text() const { return io::json_object(members_); }

JsonLine& JsonLine::add(const char* key, const char* value) { return raw(key, io::json_quoted(value)); }
JsonLine& JsonLine::add(const char* key, const std::string& value) { return raw(key, io::json_quoted(value)); }
JsonLine& JsonLine::add(const char* key, std::int64_t value) { return raw(key, fmt::format("{}", value)); }
JsonLine& JsonLine::add(const char* key, bool value) { return raw(key, value ? "true" : "false"); }
JsonLine& JsonLine::add(const char* key, double value) { return raw(key, io::json_number(value)); }
JsonLine& JsonLine::add_measured(const char* key, double value) { return value < 0 ? add_null(key) : add(key, value); }
JsonLine& JsonLine::add_known(const char* key, const std::string& value) {
    return value.empty() ? add_null(key) : add(key, value);
}
JsonLine& JsonLine::add_null(const char* key) { return raw(key, "null"); }

JsonLine& JsonLine::add(const PlanField& field) { return raw(field.name, io::json_value(field)); }

JsonLine& JsonLine::add(const char* key, const std::vector<double>& values) {
    std::string list;
    for (const double v : values) list += (list.empty() ? "" : ", ") + io::json_number(v);
    return raw(key, "[" + list + "]");
}

JsonLine& JsonLine::add(const char* key, const JsonLine& object) { return raw(key, object.text()); }

JsonLine& JsonLine::add(const char* key, const std::vector<JsonLine>& objects) {
    std::string list;
    for (const JsonLine& object : objects) list += (list.empty() ? "" : ", ") + object.text();
    return raw(key, "[" + list + "]");
}

void JsonLine::print() const {
    fmt::print("{}\n", text());
    flush_output();
}

}  // namespace quoin::cli
