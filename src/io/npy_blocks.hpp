#pragma once

// Blocks of matrices in .npy files, read and written past the page cache.

#include <string>

#include "io/bulk_file.hpp"
#include "io/npy_header.hpp"
#include "io/page_memory.hpp"

namespace quoin::io {

/// Reads blocks of the matrix in an .npy file past the page cache, by a few threads. Blocks of rows of a C-order file,
/// and blocks of columns of a Fortran-order one, are read at the disk's sequential rate.
template <class T>
class NpyBlockReader {
public:
    /// Opens the file. Data pass through `staging`, which grows as needed; readers that share it must read one after
    /// the other. Throws UnreadableFile for a file that is not an .npy file of a matrix.
    NpyBlockReader(const std::string& path, ByteCounters& counters, PageMemory& staging);
    /// Opens a file with this header, which it need not have before the first read.
    NpyBlockReader(const std::string& path, const NpyHeader& header, ByteCounters& counters, PageMemory& staging)
        : header_(header), file_(path, BulkFile::Access::Read, counters), staging_(staging) {}
    const NpyHeader& header() const { return header_; }
    const std::string& path() const { return file_.path(); }

    /// out := A(rows, cols), one call at a time. Throws UnreadableFile.
    void read(Range rows, Range cols, MatrixView<T> out) const;

private:
    NpyHeader header_;
    BulkFile file_;
    PageMemory& staging_;
};

/// An .npy file of known shape, in C or Fortran order, that is filled by blocks in any order, and may be opened again.
template <class T>
class NpyBlockWriter {
public:
    NpyBlockWriter(const std::string& path, bool fortran_order, Index rows, Index cols, ByteCounters& counters);

    /// Writes rows [first, first + block.rows) of a C-order file.
    void write_rows(Index first, MatrixView<const T> block) const;
    /// Writes columns [first, first + block.cols) of a Fortran-order file.
    void write_cols(Index first, MatrixView<const T> block) const;
    void flush() const { file_.flush(); }

private:
    Index cols_, data_offset_;
    BulkFile file_;
};

}  // namespace quoin::io
