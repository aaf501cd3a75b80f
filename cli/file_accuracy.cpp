#include "file_accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "io/npy_blocks.hpp"
#include "memory_cap.hpp"
#include "row_blocks.hpp"
#include "streamed_accuracy.hpp"

namespace quoin::cli {

namespace {

double number(Index n) { return static_cast<double>(n); }

/// Blocks of a file in one buffer: of a C-order file whole rows are read, and nothing else of a Fortran-order one.
template <class T>
class Blocks {
public:
    Blocks(const std::string& path, io::ByteCounters& bytes, io::PageMemory& staging, Index rows)
        : reader_(path, bytes, staging), buffer_(std::min(rows, reader_.header().rows), reader_.header().cols) {}
    const io::NpyHeader& header() const { return reader_.header(); }
    MatrixView<const T> read(Range rows, Range cols) {
        const Range from = reader_.header().fortran_order ? cols : Range{0, buffer_.cols()};
        const MatrixView<T> block = buffer_.view().block({0, rows.size()}, {0, from.size()});
        reader_.read(rows, from, block);
        return block.col_block({cols.begin - from.begin, cols.end - from.begin});
    }

private:
    io::NpyBlockReader<T> reader_;
    Matrix<T> buffer_;
};

}  // namespace

template <class T>
FileAccuracyPlan plan_file_accuracy(const std::string& who, Index m, Index n, double memory) {
    constexpr double s = sizeof(T), max_block_bytes = 512 << 20;
    const Index k = std::min(m, n);
    FileAccuracyPlan plan;
    // a row of A and of Q, which take at most half of the memory; a row of Q in double; a column of QᵀQ thrice, and of
    // R
    const double row = s * number(n + k), tile_row = 8 * number(k), col = (3 * 8 + s) * number(k);
    const auto count = [](double of, double each, Index most) {
        return std::clamp<Index>(static_cast<Index>(std::max(0.0, of) / each), 1, most);
    };
    plan.rows = count(std::min({max_block_bytes, memory / 2, memory - tile_row - col}), row, m);
    const double left = memory - row * number(plan.rows);
    plan.tile = count(std::min(left / 2, left - col), tile_row, StreamedAccuracy<T>::max_rows);
    plan.cols = count(left - tile_row * number(plan.tile), col, n);
    const auto bytes = [&](Index cols) { return memory - left + tile_row * number(plan.tile) + col * number(cols); };
    plan.bytes = bytes(plan.cols);
    if (plan.bytes > memory) refuse_memory_cap(who, memory, row + tile_row + col, "for --verify");
    // the same number of passes, of equal width
    const Index passes = (n + plan.cols - 1) / plan.cols;
    plan.cols = (n + passes - 1) / passes;
    plan.bytes = bytes(plan.cols);
    return plan;
}

template <class T>
FileAccuracy measure_files(Context<Host>& ctx, const std::string& A_path, const std::string& Q_path,
                           const std::string& R_path, const FileAccuracyPlan& plan) {
    io::ByteCounters bytes;
    io::PageMemory staging;
    Blocks<T> A(A_path, bytes, staging, plan.rows), Q(Q_path, bytes, staging, plan.rows);
    const io::NpyBlockReader<T> R_file(R_path, bytes, staging);
    const Index m = A.header().rows, n = A.header().cols, k = std::min(m, n), passes = (n + plan.cols - 1) / plan.cols;
    Matrix<T> R(k, std::min(n, plan.cols));
    std::optional<StreamedAccuracy<T>> all;
    for (Index pass = 0; pass < passes; ++pass) {
        const Range J{pass * plan.cols, std::min(n, (pass + 1) * plan.cols)}, above{0, std::min(k, J.end)};
        const MatrixView<T> R_J = R.view().block(above, {0, J.size()});
        R_file.read(above, J, R_J);
        StreamedAccuracy<T> accuracy(k, J, plan.tile);
        const std::string label = passes > 1 ? fmt::format("verifying, {} of {}", pass + 1, passes) : "verifying";
        for_each_block(label, {m, plan.rows},
                       [&](Range rows) { accuracy.add(ctx, A.read(rows, J), Q.read(rows, above), R_J); });
        if (all) accuracy.add(*all);
        all.emplace(std::move(accuracy));
    }
    return {all->orthogonality(), all->residual()};
}

#define QUOIN_INSTANTIATE(T)                                                                                           \
    template FileAccuracyPlan plan_file_accuracy<T>(const std::string&, Index, Index, double);                         \
    template FileAccuracy measure_files<T>(Context<Host>&, const std::string&, const std::string&, const std::string&, \
                                           const FileAccuracyPlan&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cli
