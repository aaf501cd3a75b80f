#include "input_matrix.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "arguments.hpp"
#include "memory_cap.hpp"
#include "quoin/error.hpp"

namespace quoin::cli {

namespace {

char parse_delimiter(const std::string& text) {
    if (text == "tab" || text == "\\t") return '\t';
    if (text == "space") return ' ';
    constexpr const char* of_numbers = "+-.0123456789eE\"";
    if (text.size() == 1 && text.find_first_of(of_numbers) == text.npos) return text[0];
    throw CLI::ValidationError("--delimiter",
                               "'" + text + "' is not one character between numbers, such as ';', or tab or space");
}

}  // namespace

void add_reading_arguments(CLI::App& command, MatrixFileOptions& options) {
    const std::string group = "Reading CSV (by default its delimiter and its header line are found)";
    const auto set_delimiter = [&options](const std::string& text) { options.delimiter = parse_delimiter(text); };
    add_parsed(command, "--delimiter", "C", set_delimiter, "Character between the fields, or tab or space")
        ->group(group);
    command.add_flag("--header", options.header, "The first line is a header, even if it has numbers in it")
        ->group(group);
}

MatrixFile open_matrix(const std::string& path, MatrixFileOptions options, Index memory) {
    options.most_unpacked_bytes = static_cast<Index>(memory_cap(memory));
    MatrixFile file(path, options);
    if (const std::string remark = file.remark(); !remark.empty())
        fmt::print(stderr, "quoin: {}: {}\n", file.path(), remark);
    return file;
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
    if (path == "-" || fs::is_fifo(path, error)) return true;  // what is read of a pipe is gone
    std::string head(14, '\0');
    std::ifstream(path, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size()));
    return head.starts_with("\x93NUMPY") || head == "%%MatrixMarket";
}

}  // namespace quoin::cli
