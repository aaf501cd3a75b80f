#pragma once

#include <string>
#include <vector>

#include "quoin/io.hpp"

namespace CLI {
class App;
}

namespace quoin::cli {

/// Text in --help for an argument that is a matrix.
inline constexpr const char* matrix_formats =
    ".npy, Matrix Market or CSV, each also as .gz; of an .npz the array NAME as data.npz:NAME;\n"
    "- is standard input";

/// The heading of the options that `add_reading_arguments` adds.
inline constexpr const char* reading_heading =
    "Reading CSV and other text (by default delimiter, header and row names are found)";

/// Adds --delimiter, --decimal, --header, --no-header, --skip, --comment, --columns and --missing.
void add_reading_arguments(CLI::App& command, MatrixFileOptions& options);

/// Opens a matrix. Reports on stderr which part was taken for a header, and which parts are left out. `memory`:
/// --memory, or 0.
MatrixFile open_matrix(const std::string& path, MatrixFileOptions options, Index memory);

/// Returns "0, 3 (age), …": numbers of columns, and their names if the file has them.
std::string named_columns(const std::vector<Index>& columns, const std::vector<std::string>& names);

/// Whether a file is a matrix by its name or its first bytes; everything else is left to the readers of frames.
bool is_matrix(const std::string& path);

/// Returns the file of a matrix: `path` without the name of an array in it.
std::string file_of_matrix(const std::string& path);

}  // namespace quoin::cli
