#include "input_matrix.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "memory_cap.hpp"
#include "quoin/error.hpp"

namespace quoin::cli {

namespace {

char parse_character(const std::string& name, const std::string& text, const char* example) {
    constexpr const char* of_numbers = "+-.0123456789eE\"";
    if (text.size() == 1 && text.find_first_of(of_numbers) == text.npos) return text[0];
    refuse_argument(name, fmt::format("'{}' is not one character that numbers do not have, such as {}", text, example));
}

char parse_delimiter(const std::string& text) {
    if (text == "tab" || text == "\\t") return '\t';
    if (text == "space") return ' ';
    return parse_character("--delimiter", text, "';', or tab or space");
}

/// The ranges of "1,3-5,7-", which count from 1.
std::vector<Range> parse_columns(const std::string& text) {
    const std::string name = "--columns";
    return parse_list(name, text, [](const std::string& argument, const std::string& part) {
        const std::size_t dash = part.find('-');
        const Index first = parse_dimension(argument, part.substr(0, dash));
        Index last = first;
        if (dash != part.npos)
            last = dash + 1 == part.size() ? last_column : parse_dimension(argument, part.substr(dash + 1));
        if (first < 1 || last < first)
            refuse_argument(
                argument, fmt::format("'{}' is not a range of columns, which count from 1: write 3, 3-5 or 3-", part));
        return Range{first - 1, last};
    });
}

}  // namespace

void add_reading_arguments(CLI::App& command, MatrixFileOptions& options) {
    const auto add = [&](const char* name, const char* kind, std::function<void(const std::string&)> set,
                         const char* description) {
        return add_parsed(command, name, kind, std::move(set), description)->group(reading_heading);
    };
    add(
        "--delimiter", "C", [&](const std::string& text) { options.delimiter = parse_delimiter(text); },
        "Character between the fields, or tab or space");
    add(
        "--decimal", "C",
        [&](const std::string& text) {
            if (text != "." && text != ",") refuse_argument("--decimal", "'" + text + "' is neither . nor ,");
            options.decimal = text[0];
        },
        "Decimal point, . or , (default: ., and a file whose commas may be decimal is refused)");
    const auto add_header = [&](const char* name, bool header, const char* description) {
        const auto set = [&options, name, header] {
            if (options.header.value_or(header) != header) refuse_argument(name, "contradicts the option before it");
            options.header = header;
        };
        command.add_flag_callback(name, set, description)->group(reading_heading);
    };
    add_header("--header", true, "The first line is a header");
    add_header("--no-header", false, "The first line is data");
    add(
        "--skip", "N", [&](const std::string& text) { options.skip = parse_dimension("--skip", text); },
        "Leave out the first N lines");
    add(
        "--comment", "C",
        [&](const std::string& text) {
            options.comment = text == "none" ? '\0' : parse_character("--comment", text, "'%', or none");
        },
        "Character that begins a comment, or none (default: #)");
    add(
        "--columns", "LIST", [&](const std::string& text) { options.columns = parse_columns(text); },
        "Columns of the file that make the matrix, in this order, such as 2- or 1,3-5\n(default: all but row names)");
    add(
        "--missing", "LIST",
        [&](const std::string& text) {
            options.missing = text.empty() ? std::vector<std::string>{""} : split_list(text);
        },
        "Fields to read as NaN, besides NA, such as '-,****,-999'; '' for empty ones");
}

MatrixFile open_matrix(const std::string& path, MatrixFileOptions options, Index memory) {
    options.max_unpacked_bytes = static_cast<Index>(memory_cap(memory));
    MatrixFile file(path, options);
    if (const std::string remark = file.remark(); !remark.empty())
        fmt::print(stderr, "quoin: {}: {}\n", file.path(), remark);
    return file;
}

std::string named_columns(const std::vector<Index>& columns, const std::vector<std::string>& names) {
    std::string text;
    for (const Index j : columns)
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ", j, names.empty() ? "" : fmt::format(" ({})", names[j]));
    return text;
}

std::string file_of_matrix(const std::string& path) {
    if (path == "-") return "/dev/stdin";
    const std::size_t array = path.rfind(".npz:");
    return array == path.npos ? path : path.substr(0, array + 4);
}

bool is_matrix(const std::string& path) {
    namespace fs = std::filesystem;
    const std::string file = file_of_matrix(path);
    std::string extension = fs::path(file).extension().string();
    if (extension == ".gz") extension = fs::path(file).stem().extension().string();
    for (const char* matrix : {".npy", ".npz", ".mtx", ".mm", ".csv", ".tsv", ".txt", ".dat"}) {
        if (extension == matrix) return true;
    }
    std::error_code error;
    if (path == "-" || fs::is_fifo(path, error)) return true;  // bytes read from a pipe are gone
    std::string head(14, '\0');
    std::ifstream(path, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size()));
    return head.starts_with("\x93NUMPY") || head == "%%MatrixMarket";
}

}  // namespace quoin::cli
