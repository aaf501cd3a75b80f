#pragma once

#include <string>
#include <string_view>

#include "io/text.hpp"
#include "quoin/matrix.hpp"

namespace quoin::io {

/// The shape of a table of numbers in text, and its lines of numbers.
struct CsvHeader {
    Index rows = 0;
    Index cols = 0;
    char separator = ' ';  ///< ';' ',' '\t', or ' ' for any run of blanks
    LineReader body;
};

/// Finds separator, header line and shape of `text`, the whole content of a CSV file. The first line is a header when
/// it begins with '#' or none of its fields is a number; its names need not be as many as the columns. Blank lines
/// count for nothing. One pass over the text.
///
/// Throws UnreadableFile, which names the line, for ragged rows.
CsvHeader parse_csv_header(std::string_view text, const std::string& path);

/// The matrix. A number may stand in double quotes; nan and inf are numbers here.
/// Throws UnreadableFile, which names line and field, and OutOfMemory.
Matrix<double> read_csv(const CsvHeader& header, const std::string& path);

}  // namespace quoin::io
