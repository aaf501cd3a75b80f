#pragma once

#include <algorithm>
#include <atomic>
#include <string>

#include "interrupt.hpp"
#include "progress_bar.hpp"
#include "quoin/io.hpp"
#include "quoin/rows.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "quoin/cuda.hpp"
#endif

namespace quoin::cli {

/// Calls `f(range)` for every block, under a progress bar. Throws Interrupted between two blocks once a signal has
/// come.
template <class F>
void for_each_block(const std::string& label, RowBlocks blocks, F&& f) {
    std::atomic<Index> rows_done{0};
    const ProgressBar bar(label, [&] { return static_cast<double>(rows_done) / static_cast<double>(blocks.rows); });
    for (Index i = 0; i < blocks.count(); ++i) {
        throw_if_interrupted();
        const Range rows = blocks.block(i);
        f(rows);
        rows_done += rows.size();
    }
}

/// Reads A(rows, :) of a file, with all threads if its format allows.
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

/// Returns a reader of the rows of a file, piece by piece. It throws Interrupted once a signal has come.
template <class T>
RowReader<T> reader_of(const MatrixFile& file) {
    return [&file](Range rows, MatrixView<T> block) {
        throw_if_interrupted();
        read_rows<T>(file, rows, block);
    };
}

/// Reads the whole matrix of a file to the context's device, and waits for it. A GPU gets one block of rows while the
/// next one is read.
template <class T, class D>
Matrix<T, D> read_matrix(Context<D>& ctx, const MatrixFile& file) {
    Matrix<T, D> A(ctx, file.rows(), file.cols());
    std::atomic<Index> rows_done{0};
    const ProgressBar bar("reading " + file.path(),
                          [&] { return static_cast<double>(rows_done) / static_cast<double>(A.rows()); });
    const RowReader<T> read = reader_of<T>(file);
    copy_rows_to_device<T>(
        ctx,
        [&](Range rows, MatrixView<T> block) {
            read(rows, block);
            rows_done += rows.size();
        },
        A.view());
    ctx.wait();
    return A;
}

/// Writes all rows of A to a file that has its shape.
template <class T, class D>
void write_matrix(Context<D>& ctx, NpyRowWriter<T>& writer, const std::string& label, View<const T, D> A) {
    std::atomic<Index> rows_done{0};
    const ProgressBar bar("writing " + label,
                          [&] { return static_cast<double>(rows_done) / static_cast<double>(A.rows); });
    copy_rows_to_host<T>(ctx, A, [&](Range rows, MatrixView<const T> block) {
        throw_if_interrupted();
        writer.write_rows(rows.begin, block);
        rows_done += rows.size();
    });
}

/// Returns the bytes that the reader of `file` itself holds in memory while rows are read. Text is parsed whole, .npy
/// is mapped.
inline double reader_bytes(const MatrixFile& file) {
    return file.streams() ? 0 : sizeof(double) * static_cast<double>(file.rows()) * static_cast<double>(file.cols());
}

}  // namespace quoin::cli
