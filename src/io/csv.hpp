#pragma once

// Tables of numbers in text.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/text.hpp"
#include "quoin/io.hpp"
#include "quoin/matrix.hpp"

namespace quoin::io {

/// The lines of a table that hold more than blanks and a comment, without the comment.
///
/// A comment begins at the start of a line, or after a blank or a separator, outside double quotes.
/// Excel's errors, such as #N/A, are fields.
class TableLines {
public:
    /// `comment`: the character that begins one, or 0.
    TableLines(std::string_view text, char comment)
        : lines_(text), comment_(text.find(comment) == text.npos ? '\0' : comment) {}
    std::optional<std::string_view> next() { return comment_ == 0 ? lines_.next() : next_before_comment(); }
    void skip(Index count) { lines_.skip(count); }
    Index number() const { return lines_.number(); }

private:
    std::optional<std::string_view> next_before_comment();

    LineReader lines_;
    char comment_;
};

/// The shape of a table of numbers in text, its lines of numbers, and how they are read.
struct CsvHeader {
    Index rows = 0;
    Index cols = 0;
    char separator = ' ';  ///< ' ': any run of blanks
    char decimal = '.';
    bool decimal_given = false;       ///< by the options
    bool header = false;              ///< a line above `body` was taken for a header
    std::vector<Index> targets = {};  ///< the column of the matrix that a field of a line goes to, or -1
    std::vector<std::string> missing = {};
    std::vector<double> missing_values = {};  ///< the elements of `missing` that are numbers
    std::vector<std::string> names = {};      ///< of the matrix's columns, or none
    std::string remark = {};  ///< which lines and fields were read as a header or row names, as MatrixFile::remark
    TableLines body;
};

/// Finds separator, header line, row names and shape of `text`, the whole content of a file. One pass over the text.
/// docs/files.md has the grammar.
///
/// Throws UnreadableFile for ragged rows and for ambiguous tables. It names the line, and the option that resolves an
/// ambiguity.
CsvHeader parse_csv_header(std::string_view text, const std::string& path, const MatrixFileOptions& options);

/// Returns the matrix. Throws UnreadableFile, which names line and field, and OutOfMemory.
Matrix<double> read_csv(const CsvHeader& header, const std::string& path);

}  // namespace quoin::io
