#pragma once

#include <string>
#include <string_view>

#include "io/text.hpp"
#include "quoin/matrix.hpp"

namespace quoin::io {

/// What the content of a table in text leaves open.
struct CsvOptions {
    char separator =
        0;  ///< between fields, ' ' for any run of blanks; 0: the first of these that the lines have: ; , tab blank
    bool header = false;  ///< the first line is a header whatever it holds
};

/// The shape of a table of numbers in text, and its lines of numbers.
struct CsvHeader {
    Index rows = 0;
    Index cols = 0;
    char separator = ' ';  ///< ' ': any run of blanks
    bool index = false;    ///< the first field of each line is an index and no part of the matrix
    LineReader body;
};

/// Finds separator, header line and shape of `text`, the whole content of a CSV file. The first line is a header when
/// it begins with '#' or none of its fields is a number; its names need not be as many as the columns. Blank lines
/// count for nothing. One pass over the text.
///
/// A header whose first name is empty has an index below it, as pandas and R write one; there the other names may be 0, 1, 2 …
///
/// Throws UnreadableFile, which names the line, for ragged rows.
CsvHeader parse_csv_header(std::string_view text, const std::string& path, const CsvOptions& options);

/// The matrix. A number may stand in double quotes; nan and inf are numbers here.
/// Throws UnreadableFile, which names line and field, and OutOfMemory.
Matrix<double> read_csv(const CsvHeader& header, const std::string& path);

}  // namespace quoin::io
