#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace quoin::cli {

/// A value that is none of the names that an option takes.
class NoSuchName : public CLI::ValidationError {
public:
    NoSuchName(const std::string& argument, const std::string& value, std::vector<std::string> names);
    const std::vector<std::string>& names() const { return names_; }

private:
    std::vector<std::string> names_;
};

/// Adds the hidden flag --describe, which prints the commands and options of `program` as JSON. Man pages and shell
/// completion are made from it.
void add_describe_flag(CLI::App& program);

}  // namespace quoin::cli
