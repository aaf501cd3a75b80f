#pragma once

// The header of an .npy file: type, order, shape, and where the data begin.

#include <cstddef>
#include <string>
#include <string_view>

#include "quoin/io.hpp"

namespace quoin::io {

/// Element types of .npy that Quoin reads, in NumPy's names.
enum class NpyType { F4, F8, I1, I2, I4, I8, U1, U2, U4, U8, B1 };

/// The header of an .npy file, whose elements begin at byte `data_offset`.
struct NpyHeader {
    NpyType type = NpyType::F8;
    std::size_t element_bytes = 8;
    bool swapped = false;  ///< stored in the other byte order than this machine's
    bool fortran_order = false;
    Index rows = 0;
    Index cols = 0;
    std::size_t data_offset = 0;

    /// Returns the byte of the file at which element (i, j) begins.
    std::size_t offset(Index i, Index j) const {
        return data_offset + static_cast<std::size_t>(fortran_order ? i + j * rows : i * cols + j) * element_bytes;
    }
};

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// Reads the header of `file`, the whole content of an .npy file of version 1.0, 2.0 or 3.0, and checks that the data
/// are as long as the header says. A 1-D array is a column.
/// Throws UnreadableFile (with `path`) for anything malformed, truncated, of another type or of another dimension.
NpyHeader parse_npy_header(std::string_view file, const std::string& path);

/// Returns the header of m×n elements T in this machine's byte order, from byte `data_offset` on.
template <class T>
NpyHeader npy_header_of(bool fortran_order, Index rows, Index cols, Index data_offset) {
    return {entry_for(scalar_kind<T>, NpyType::F4, NpyType::F8),
            sizeof(T),
            false,
            fortran_order,
            rows,
            cols,
            static_cast<std::size_t>(data_offset)};
}

/// Returns the bytes before the data of a version 1.0 file of f4 (T = float) or f8 elements in this machine's byte
/// order; a multiple of 64. `shape` is a Python tuple: "(3, 4)", "(3,)".
template <class T>
std::string compose_npy_header(bool fortran_order, const std::string& shape);

}  // namespace quoin::io
