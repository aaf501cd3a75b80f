#pragma once

// Blocks of an .npy file that is in memory.

#include <string_view>

#include "io/npy_header.hpp"

namespace quoin::io {

/// Reads A(rows, cols) of the matrix in the .npy file `file`, whose header is `header`, and converts it to T. Touches
/// only the bytes of that block. `out` is rows.size() × cols.size(), any ld; the ranges lie in the matrix.
template <class T>
void read_npy_block(std::string_view file, const NpyHeader& header, Range rows, Range cols, MatrixView<T> out);

}  // namespace quoin::io
