// Writes .npy files, whole and row by row.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "io/atomic_file.hpp"
#include "io/bulk_file.hpp"
#include "io/npy_header.hpp"
#include "io/transpose.hpp"
#include "quoin/error.hpp"
#include "quoin/io.hpp"

namespace quoin {
namespace {

constexpr Index buffer_bytes = Index{1} << 20;

/// Writes the header and allocates the whole file. Returns the byte where the data begin.
template <class T>
Index begin_npy(io::AtomicFile& file, bool fortran_order, const std::string& shape, std::size_t data_bytes) {
    const std::string header = io::compose_npy_header<T>(fortran_order, shape);
    file.reserve(static_cast<Index>(header.size() + data_bytes));
    file.write_at(0, header.data(), header.size());
    return static_cast<Index>(header.size());
}

void check_open(const io::AtomicFile& file, const std::string& path) {
    if (!file.is_open()) throw InvalidArgument(fmt::format("the writer of {} is committed or has failed", path));
}

template <class T>
void require_fit(const std::string& path, Index rows, Index cols, Index first, MatrixView<const T> block) {
    if (first >= 0 && block.rows >= 0 && block.rows <= rows - first && block.cols == cols) return;
    throw InvalidArgument(fmt::format("a {} x {} block at row {} does not fit in {}, which is {} x {}", block.rows,
                                      block.cols, first, path, rows, cols));
}

/// Writes A at byte `offset`, column after column.
template <class T>
void write_columns(io::AtomicFile& file, Index offset, MatrixView<const T> A) {
    const Index column_bytes = A.rows * Index{sizeof(T)};
    if (A.empty()) return;
    if (A.ld == A.rows) {
        file.write_at(offset, A.data, static_cast<std::size_t>(A.cols * column_bytes));
    } else if (column_bytes > buffer_bytes) {
        for (Index j = 0; j < A.cols; ++j, offset += column_bytes) {
            file.write_at(offset, A.at(0, j), static_cast<std::size_t>(column_bytes));
        }
    } else {
        const Index nj = buffer_bytes / column_bytes;
        std::vector<T> packed(static_cast<std::size_t>(A.rows * std::min(nj, A.cols)));
        for (Index j = 0; j < A.cols; j += nj) {
            const MatrixView<const T> piece = A.col_block({j, std::min(j + nj, A.cols)});
            for (Index p = 0; p < piece.cols; ++p) std::copy_n(piece.at(0, p), A.rows, packed.data() + p * A.rows);
            file.write_at(offset, packed.data(), static_cast<std::size_t>(piece.cols * column_bytes));
            offset += piece.cols * column_bytes;
        }
    }
}

}  // namespace

template <class T>
void write_npy(const std::string& path, MatrixView<const T> A) {
    const std::size_t bytes = detail::checked_bytes(A.rows, A.cols, sizeof(T));
    io::AtomicFile file(path);
    write_columns<T>(file, begin_npy<T>(file, true, fmt::format("({}, {})", A.rows, A.cols), bytes), A);
    file.commit();
}

template <class T>
void write_npy(const std::string& path, const std::vector<T>& values) {
    io::AtomicFile file(path);
    const std::size_t bytes = values.size() * sizeof(T);
    const Index offset = begin_npy<T>(file, false, fmt::format("({},)", values.size()), bytes);
    file.write_at(offset, values.data(), bytes);
    file.commit();
}

template <class T>
struct NpyRowWriter<T>::Impl {
    std::string path;
    Index rows;
    Index cols;
    io::AtomicFile file;
    Index data_offset = 0;
    Index rows_written = 0;
    std::vector<T> buffer = {};
};

template <class T>
NpyRowWriter<T>::NpyRowWriter(const std::string& path, Index rows, Index cols) {
    const std::size_t bytes = detail::checked_bytes(rows, cols, sizeof(T));
    impl_ = detail::own<Impl>(Impl{path, rows, cols, io::AtomicFile(path)});
    impl_->data_offset = begin_npy<T>(impl_->file, false, fmt::format("({}, {})", rows, cols), bytes);
}

template <class T>
void NpyRowWriter<T>::write_rows(Index first, MatrixView<const T> block) {
    Impl& w = *impl_;
    check_open(w.file, w.path);
    require_fit<T>(w.path, w.rows, w.cols, first, block);
    w.rows_written += block.rows;
    if (block.empty()) return;
    w.buffer.resize(static_cast<std::size_t>(buffer_bytes) / sizeof(T));
    io::in_c_order<T>(w.cols, first, block, w.buffer, [&](Index element, const T* data, Index count) {
        w.file.write_at(w.data_offset + element * Index{sizeof(T)}, data, static_cast<std::size_t>(count) * sizeof(T));
    });
}

template <class T>
void NpyRowWriter<T>::commit() {
    check_open(impl_->file, impl_->path);
    if (impl_->rows_written < impl_->rows) {
        throw InvalidArgument(
            fmt::format("only {} of the {} rows of {} were written", impl_->rows_written, impl_->rows, impl_->path));
    }
    impl_->file.commit();
}

template <class T>
const std::string& NpyRowWriter<T>::unfinished_path() const {
    check_open(impl_->file, impl_->path);
    return impl_->file.temporary_path();
}

template <class T>
void NpyRowWriter<T>::count_rows(Index rows) {
    impl_->rows_written += rows;
}

template <class T>
void write_npy_rows(const std::string& unfinished_path, Index rows, Index first, MatrixView<const T> block) {
    require_fit<T>(unfinished_path, rows, block.cols, first, block);
    std::error_code none;
    if (!std::filesystem::is_regular_file(unfinished_path, none))
        throw UnwritableFile(unfinished_path, "is not there: the processes need a file system in common");
    const Index offset =
        static_cast<Index>(io::compose_npy_header<T>(false, fmt::format("({}, {})", rows, block.cols)).size());
    io::ByteCounters counters;
    const io::BulkFile file(unfinished_path, io::BulkFile::Access::Write, counters);
    std::vector<T> buffer(static_cast<std::size_t>(buffer_bytes) / sizeof(T));
    io::in_c_order<T>(block.cols, first, block, buffer, [&](Index element, const T* data, Index count) {
        file.write(offset + element * Index{sizeof(T)}, data, count * Index{sizeof(T)});
    });
    file.flush();
}

template <class T>
struct NpyColumnWriter<T>::Impl {
    std::string path;
    Index rows;
    io::AtomicFile file;
    Index cols = 0;
    // of the header: a shape of any two 64-bit numbers pads to the same length
    Index data_offset = static_cast<Index>(io::compose_npy_header<T>(true, "(0, 0)").size());
};

template <class T>
NpyColumnWriter<T>::NpyColumnWriter(const std::string& path, Index rows) {
    detail::checked_bytes(rows, 1, sizeof(T));
    impl_ = detail::own<Impl>(Impl{path, rows, io::AtomicFile(path)});
}

template <class T>
void NpyColumnWriter<T>::append(MatrixView<const T> block) {
    Impl& w = *impl_;
    check_open(w.file, w.path);
    if (block.rows != w.rows) {
        throw InvalidArgument(
            fmt::format("columns of {} rows do not fit in {}, which has {}", block.rows, w.path, w.rows));
    }
    write_columns<T>(w.file, w.data_offset + w.cols * w.rows * Index{sizeof(T)}, block);
    w.cols += block.cols;
}

template <class T>
void NpyColumnWriter<T>::commit() {
    Impl& w = *impl_;
    check_open(w.file, w.path);
    const std::string header = io::compose_npy_header<T>(true, fmt::format("({}, {})", w.rows, w.cols));
    w.file.write_at(0, header.data(), header.size());
    w.file.commit();
}

template void write_npy<float>(const std::string&, MatrixView<const float>);
template void write_npy<double>(const std::string&, MatrixView<const double>);
template void write_npy<float>(const std::string&, const std::vector<float>&);
template void write_npy<double>(const std::string&, const std::vector<double>&);
template void write_npy<Index>(const std::string&, const std::vector<Index>&);
template class NpyColumnWriter<float>;
template class NpyColumnWriter<double>;
template void write_npy_rows<float>(const std::string&, Index, Index, MatrixView<const float>);
template void write_npy_rows<double>(const std::string&, Index, Index, MatrixView<const double>);
template class NpyRowWriter<float>;
template class NpyRowWriter<double>;

}  // namespace quoin
