#pragma once

#include <algorithm>
#include <atomic>
#include <string>

#include "interrupt.hpp"
#include "progress_bar.hpp"
#include "quoin/io.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "quoin/cuda.hpp"
#endif

namespace quoin::cli {

/// Rows 0 … rows cut into blocks of `block_rows`, the last one shorter.
struct RowBlocks {
    Index rows = 0;
    Index block_rows = 1;

    Index count() const { return (rows + block_rows - 1) / block_rows; }
    Range block(Index i) const { return {i * block_rows, std::min(rows, (i + 1) * block_rows)}; }
};

/// Blocks of about 64 MiB of an m×n matrix: what is read or written between two looks at the stop request.
inline RowBlocks transfer_blocks(Index m, Index n, std::size_t element_bytes) {
    const Index row_bytes = std::max<Index>(1, n) * static_cast<Index>(element_bytes);
    return {m, std::max<Index>(1, (Index{64} << 20) / row_bytes)};
}

enum class Order { Forward, Reverse };

/// Calls `f(range)` for every block, under a progress bar. Throws Interrupted between two blocks once a signal has come.
template <class F>
void for_each_block(const std::string& label, RowBlocks blocks, Order order, F&& f) {
    std::atomic<Index> rows_done{0};
    const ProgressBar bar(label, [&] { return static_cast<double>(rows_done) / static_cast<double>(blocks.rows); });
    const Index count = blocks.count();
    for (Index i = 0; i < count; ++i) {
        throw_if_interrupted();
        const Range rows = blocks.block(order == Order::Forward ? i : count - 1 - i);
        f(rows);
        rows_done += rows.size();
    }
}

/// A(rows, :) of a file, by every thread where its format allows.
template <class T>
void read_rows(const MatrixFile& file, Range rows, MatrixView<T> out) {
    if (!file.streams()) return file.read_rows<T>(rows, out);
    // an .npy that could be opened can be read: no exception has to leave the loop
    const Index row_bytes = std::max<Index>(1, out.cols) * Index{sizeof(T)};
    const Index piece = std::max<Index>(64, (Index{1} << 18) / row_bytes);
#pragma omp parallel for schedule(dynamic)
    for (Index i = 0; i < rows.size(); i += piece) {
        const Range r{i, std::min(rows.size(), i + piece)};
        file.read_rows<T>({rows.begin + r.begin, rows.begin + r.end}, out.row_block(r));
    }
}

/// The whole matrix of a file.
template <class T>
Matrix<T> read_matrix(Context<Host>&, const MatrixFile& file) {
    Matrix<T> A(file.rows(), file.cols());
    for_each_block("reading " + file.path(), transfer_blocks(A.rows(), A.cols(), sizeof(T)), Order::Forward,
                   [&](Range rows) { read_rows<T>(file, rows, A.view().row_block(rows)); });
    return A;
}

/// The rows of a file, block after block, in one buffer.
template <class T>
class BlockReader {
public:
    BlockReader(const MatrixFile& file, RowBlocks blocks) : file_(file), buffer_(blocks.block_rows, file.cols()) {}

    /// A(rows, :), valid until the next call.
    MatrixView<const T> read(Range rows) {
        const MatrixView<T> block = buffer_.view().row_block({0, rows.size()});
        file_.read_rows<T>(rows, block);
        return block;
    }

private:
    const MatrixFile& file_;
    Matrix<T> buffer_;
};

/// All rows of A into a file that has its shape.
template <class T>
void write_matrix(Context<Host>&, NpyRowWriter<T>& writer, const std::string& label, MatrixView<const T> A) {
    for_each_block("writing " + label, transfer_blocks(A.rows, A.cols, sizeof(T)), Order::Forward,
                   [&](Range rows) { writer.write_rows(rows.begin, A.row_block(rows)); });
}

#ifdef QUOIN_HAVE_CUDA
/// The whole matrix of a file on the GPU, once it is there: one block of rows is read while the one before it travels.
template <class T>
Matrix<T, Cuda> read_matrix(Context<Cuda>& ctx, const MatrixFile& file) {
    Matrix<T, Cuda> A(ctx, file.rows(), file.cols());
    std::atomic<Index> rows_done{0};
    const ProgressBar bar("reading " + file.path(),
                          [&] { return static_cast<double>(rows_done) / static_cast<double>(A.rows()); });
    copy_rows_to_device<T>(
        ctx,
        [&](Range rows, MatrixView<T> block) {
            throw_if_interrupted();
            read_rows<T>(file, rows, block);
            rows_done += rows.size();
        },
        A.view());
    ctx.wait();
    return A;
}

/// All rows of a matrix on the GPU into a file.
template <class T>
void write_matrix(Context<Cuda>& ctx, NpyRowWriter<T>& writer, const std::string& label, MatrixView<const T, Cuda> A) {
    std::atomic<Index> rows_done{0};
    const ProgressBar bar("writing " + label,
                          [&] { return static_cast<double>(rows_done) / static_cast<double>(A.rows); });
    copy_rows_to_host<T>(ctx, A, [&](Range rows, MatrixView<const T> block) {
        throw_if_interrupted();
        writer.write_rows(rows.begin, block);
        rows_done += rows.size();
    });
}
#endif

/// What the reader of `file` itself holds in memory while rows are read: text is parsed whole, .npy is mapped.
inline double reader_bytes(const MatrixFile& file) {
    return file.streams() ? 0 : sizeof(double) * static_cast<double>(file.rows()) * static_cast<double>(file.cols());
}

}  // namespace quoin::cli
