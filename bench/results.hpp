#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "json_line.hpp"
#include "output_files.hpp"
#include "studies.hpp"

namespace quoin::cli {

/// Returns `value` in `format`, or `otherwise` if it is negative: not measured.
inline std::string measured(double value, const char* format, const char* otherwise = "−") {
    return value < 0 ? otherwise : fmt::format(fmt::runtime(format), value);
}

/// Begins a line of results: rows, cols and dtype.
inline JsonLine case_line(Shape shape, ScalarKind dtype) {
    JsonLine line;
    line.add("rows", shape.rows).add("cols", shape.cols).add("dtype", to_string(dtype));
    return line;
}

/// Where a study's results go, line after line as they come: JSON or text on stdout, and a CSV file where one is
/// wanted.
class Results {
public:
    /// Opens the CSV file. Throws UnwritableFile.
    explicit Results(const BenchArguments& arguments);

    /// The first line of the CSV file.
    void describe(const std::string& about) const;
    /// One case: JSON where that is wanted, and a row of the CSV file, whose columns are the keys of the first case.
    void record(const JsonLine& line);
    /// Records a case and, unless JSON is wanted, prints it as a row of a table, or as a list if it has too many
    /// columns. The keys are the head of the table, which is printed again where they change.
    void add(const JsonLine& line);
    /// Prints text, unless JSON is wanted.
    template <class... Arguments>
    void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
        if (json_) return;
        fmt::print(format, std::forward<Arguments>(arguments)...);
        flush_output();
    }

private:
    void write(const std::string& line) const;

    bool json_, has_columns_ = false;
    std::string path_, head_;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
};

}  // namespace quoin::cli
