#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "quoin/matrix.hpp"
#include "quoin/owned.hpp"
#include "quoin/scalar.hpp"

namespace quoin {

/// Choices that a file itself does not make. All but the last are for tables in text (CSV). Messages name them by the
/// program's options: --decimal is `decimal`.
struct MatrixFileOptions {
    char delimiter = 0;               ///< between fields, ' ' for any run of blanks; 0: detected
    char decimal = 0;                 ///< '.' or ','; 0: '.', and a file whose commas may be decimal is refused
    std::optional<bool> header = {};  ///< the first line is a header, or data; absent: detected
    Index skip = 0;                   ///< lines of the file to leave out at its start
    char comment = '#';               ///< begins a comment that ends with the line; 0: there are no comments
    std::vector<Range> columns = {};  ///< fields of a line to read, from 0, in this order; empty: all but an index
    bool one_column = false;  ///< a single column is expected: two columns of whole numbers may be decimal commas
    std::vector<std::string> missing = {};      ///< fields that are read as NaN, besides NA; a number by its value
    Index max_unpacked_bytes = Index{4} << 30;  ///< limit for a compressed file, and for a pipe
};
/// The end of a range of `MatrixFileOptions::columns` that ends with the last column.
inline constexpr Index last_column = std::numeric_limits<Index>::max();

/// An open matrix file. Its header is read and checked at once, its data on demand.
///
/// Formats, recognised by content and then by name:
/// - NumPy .npy (versions 1 to 3, C and Fortran order, little and big endian; f4, f8, every integer type and bool; a
///   1-D array is a column), memory-mapped;
/// - Matrix Market (array and coordinate; real, integer, pattern; general, symmetric, skew-symmetric), read dense, with
///   repeated entries summed;
/// - tables of numbers in text (CSV), whose grammar is in docs/files.md: semicolon, comma, tab or blanks between
///   fields, '#' before a comment, a header if the first line has names and no number, R's and pandas' row names left
///   out, exponents of C and Fortran, NA as NaN. Opening counts the rows in one pass. `remark` reports what was read as
///   a header or as row names. Ambiguous tables are refused; the message names the option that resolves the ambiguity;
/// - each of these compressed by gzip (.gz), and arrays of an .npz: the path "data.npz:A" means its array A, "data.npz"
///   its only array;
/// - each of these through a pipe, which is read to its end; "-" is standard input.
///
/// f4 stays f32; every other type is f64, and integers beyond 2^53 are rounded to it.
/// The file must not change while it is open: the data are mapped from it. Const members may be called from several
/// threads. Throws UnreadableFile, in one sentence that begins with the path, for a file that is missing, truncated,
/// malformed, of a type not listed, or of an impossible size; for text formats it names the line. Throws OutOfMemory if
/// the data unpack to more than `max_unpacked_bytes`.
///
///     MatrixFile file("A.npy");
///     Matrix<double> A = file.read<double>();
class MatrixFile {
public:
    /// Opens the file. Reads it as a whole unless it `streams`.
    explicit MatrixFile(const std::string& path, const MatrixFileOptions& options = {});
    /// Views `columns` (from 0) of the matrix of `whole`, which must outlive the view, in this order. It reads whole
    /// rows.
    MatrixFile(const MatrixFile& whole, std::vector<Index> columns);

    /// Return the rows and columns of the matrix, and its type: f32 for an .npy file of f32, else f64.
    Index rows() const;
    Index cols() const;
    ScalarKind dtype() const;
    /// Returns the name that messages use.
    const std::string& path() const;
    /// Returns the names of the columns in the header of a table in text; empty if the file has none.
    std::vector<std::string> column_names() const;
    /// Returns the column of the file's matrix that is column j: j, unless this is a view of some columns.
    Index column_in_file(Index j) const;
    /// Reports which line was read as a header and what was left out of the matrix, in words that can follow the path;
    /// mostly "".
    std::string remark() const;
    /// Whether `read_rows` reads only the requested rows (uncompressed .npy files). Other files are in memory as a
    /// whole.
    bool streams() const;

    /// Reads A(rows, :) into `out` (rows.size() × cols, any ld), converted to T (f64 beyond the range of f32 becomes
    /// ±inf).
    ///
    /// In an .npy file it touches only these rows, and they do not stay in resident memory. Throws InvalidArgument for
    /// `rows` out of range or an `out` of another shape, UnreadableFile, OutOfMemory.
    template <class T>
    void read_rows(Range rows, MatrixView<T> out) const;
    /// Reads the whole matrix. Throws UnreadableFile, OutOfMemory.
    template <class T>
    Matrix<T> read() const;

private:
    struct Impl;
    detail::Owned<Impl> impl_;
};

/// Writes A (any ld) as .npy (version 1.0, Fortran order) under `path`, atomically: it writes a temporary file in the
/// same folder, flushes it to the disk and renames it. Throws UnwritableFile. It then leaves no temporary file, and an
/// older file at `path` is unchanged.
template <class T>
void write_npy(const std::string& path, MatrixView<const T> A);
/// Writes a one-dimensional array in this way.
template <class T>
void write_npy(const std::string& path, const std::vector<T>& values);

/// An .npy file of known shape (C order) that is filled by blocks of rows and appears under its name only at `commit`.
///
/// The constructor reserves the disk space, so that a full disk is reported before the work. If it fails or is
/// destroyed before `commit`, it leaves no file. For one thread at a time.
/// Members throw UnwritableFile, and InvalidArgument for a block that does not fit and after `commit` or a failure.
///
///     NpyRowWriter<double> writer("Q.npy", m, n);
///     for (Range r : blocks) writer.write_rows(r.begin, block_of_q(r));
///     writer.commit();
template <class T>
class NpyRowWriter {
public:
    /// Begins a file of rows × cols.
    NpyRowWriter(const std::string& path, Index rows, Index cols);
    /// Writes rows [first, first + block.rows), in any order, each once.
    void write_rows(Index first, MatrixView<const T> block);
    /// Return the path of the unfinished file, for `write_npy_rows` in other processes, and count `rows` that they have
    /// written.
    const std::string& unfinished_path() const;
    void count_rows(Index rows);
    /// Publishes the file. Throws InvalidArgument if rows are missing, and leaves the writer unchanged.
    void commit();

private:
    struct Impl;
    detail::Owned<Impl> impl_;
};

/// Writes rows [first, first + block.rows) of the unfinished file of another process's NpyRowWriter of rows ×
/// block.cols. They are on the disk when it returns. Throws UnwritableFile, and InvalidArgument for a block that does
/// not fit.
template <class T>
void write_npy_rows(const std::string& unfinished_path, Index rows, Index first, MatrixView<const T> block);

/// An .npy file (Fortran order) that grows by any number of columns and appears under its name only at `commit`.
///
/// If it fails or is destroyed before `commit`, it leaves no file. For one thread at a time.
/// Members throw UnwritableFile, and InvalidArgument for a block with another number of rows and after `commit` or a
/// failure.
///
///     NpyColumnWriter<float> writer("L.npy", m);
///     while (next(block)) writer.append(block);
///     writer.commit();
template <class T>
class NpyColumnWriter {
public:
    /// Begins a file of `rows` rows.
    NpyColumnWriter(const std::string& path, Index rows);
    /// Writes the next block.cols columns.
    void append(MatrixView<const T> block);
    /// Publishes the file.
    void commit();

private:
    struct Impl;
    detail::Owned<Impl> impl_;
};

/// Removes the temporary files of every unfinished write of this process; safe to call from a signal handler. These
/// writes then fail at their end.
void remove_unfinished_files() noexcept;

}  // namespace quoin
