#pragma once

#include <string_view>

#include "io/npy_header.hpp"

namespace quoin::io {

/// A(rows, cols) of the matrix in the .npy file `file`, whose header is `header`, converted to T. Touches the bytes of
/// that block only. `out` is rows.size() × cols.size(), any ld; the ranges lie in the matrix.
template <class T>
void read_npy_block(std::string_view file, const NpyHeader& header, Range rows, Range cols, MatrixView<T> out);

}  // namespace quoin::io
