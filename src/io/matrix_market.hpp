#pragma once

// Matrix Market files.

#include <string>
#include <string_view>

#include "io/text.hpp"
#include "quoin/matrix.hpp"

namespace quoin::io {

enum class MatrixMarketSymmetry { General, Symmetric, SkewSymmetric };

/// The banner and the size line of a Matrix Market file, and its lines from there on.
struct MatrixMarketHeader {
    bool coordinate = false;
    bool integer = false;
    bool pattern = false;
    MatrixMarketSymmetry symmetry = MatrixMarketSymmetry::General;
    Index rows = 0;
    Index cols = 0;
    Index entries = 0;  ///< stored in the file
    LineReader body;
};

/// True if `text` begins with the banner, in upper or lower case.
bool is_matrix_market(std::string_view text);

/// Reads the head of `text`, the whole content of a Matrix Market file. Complex and hermitian matrices are refused.
/// Throws UnreadableFile, which names the line.
MatrixMarketHeader parse_matrix_market_header(std::string_view text, const std::string& path);

/// Returns the matrix, dense. Repeated entries are summed; a pattern's entries are 1. Throws UnreadableFile, which
/// names the line, and OutOfMemory.
Matrix<double> read_matrix_market(const MatrixMarketHeader& header, const std::string& path);

}  // namespace quoin::io
