#pragma once

#include <string>

#include "io/bulk_file.hpp"
#include "io/npy_header.hpp"
#include "io/page_memory.hpp"

namespace quoin::io {

/// Blocks of the matrix in an .npy file, read past the page cache by a few threads: of rows of a C-order file and of columns of
/// a Fortran-order one at the disk's sequential rate.
template <class T>
class NpyBlockReader {
public:
    /// What is read passes through `staging`, which grows as it has to; readers with the same one read one after the other.
    /// Throws UnreadableFile for what is not an .npy file of a matrix.
    NpyBlockReader(const std::string& path, ByteCounters& counters, PageMemory& staging);
    /// Of a file that is as `header` says, or becomes so before it is read.
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

    /// Rows [first, first + block.rows) of a C-order file.
    void write_rows(Index first, MatrixView<const T> block) const;
    /// Columns [first, first + block.cols) of a Fortran-order file.
    void write_cols(Index first, MatrixView<const T> block) const;
    void flush() const { file_.flush(); }

private:
    Index cols_, data_offset_;
    BulkFile file_;
};

}  // namespace quoin::io
