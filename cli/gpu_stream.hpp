#pragma once

#include <functional>
#include <optional>

#include "json_line.hpp"
#include "naming_file.hpp"
#include "quoin/streaming.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"
#include "streaming_layout.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "devices.hpp"
#endif

namespace quoin::cli {

/// Where the time of a stream through a GPU went, in seconds. Work on the GPU runs beside the reading of the next block.
struct StreamTimes {
    double reading = 0;    ///< of files, into pinned memory
    double to_gpu = 0;     ///< spent waiting for copies to the GPU, which run beside the reading
    double computing = 0;  ///< on the GPU
    double from_gpu = 0;   ///< spent waiting for copies from the GPU, which run beside the writing
    double writing = 0;    ///< of files
};

/// Their fields of a report's JSON.
void add_stream_times(JsonLine& line, const StreamTimes& times);
/// Their lines of a report.
void print_stream_times(const StreamTimes& times);

/// What R of m×n rows, with p right-hand sides or with Q beside it, takes of a GPU's memory; nothing where that cannot be
/// streamed.
std::optional<StreamingMemory> gpu_streaming(Index m, Index n, Index p, bool with_q, std::size_t element_bytes,
                                             const Options& options);

/// Rows of a block beyond which longer ones bring nothing: 256 MiB, which travel in some 5 ms, and 8n rows, of whose flops the
/// triangle above them is an eighth.
Index enough_gpu_rows(Index n, std::size_t element_bytes);

#ifdef QUOIN_HAVE_CUDA
/// The cap on what the program allocates on the GPU: what is free there, or `given` (0: not) where that is less.
double gpu_memory_cap(const Context<Cuda>& ctx, Index given);

/// Blocks of rows of a file on a GPU: the copy of one runs on a stream of its own, beside the context's work on the one before.
template <class T>
class GpuRows {
public:
    GpuRows(Context<Cuda>& ctx, const MatrixFile& file, RowBlocks blocks, StreamTimes& times)
        : ctx_(ctx), file_(file), times_(times) {
        for (Matrix<T, Cuda>& buffer : buffers_) buffer = Matrix<T, Cuda>(ctx, blocks.block_rows, file.cols());
        transfers_.follow(ctx.stream());
        if (ctx.trace()) transfers_.attach(ctx.trace());
    }

    /// A(rows, :) for work that is enqueued on the context before the next call. Returns when the rows have been read.
    MatrixView<const T, Cuda> read(Range rows) {
        const MatrixView<T, Cuda> block = buffers_[turn_].view().row_block({0, rows.size()});
        turn_ = 1 - turn_;
        const Stopwatch watch;
        double reading = 0;
        copy_rows_to_device<T>(
            transfers_,
            [&](Range r, MatrixView<T> piece) {
                throw_if_interrupted();
                const Stopwatch reading_watch;
                read_rows<T>(file_, {rows.begin + r.begin, rows.begin + r.end}, piece);
                reading += reading_watch.seconds();
            },
            block);
        times_.reading += reading;
        times_.to_gpu += watch.seconds() - reading;
        ctx_.follow(transfers_.stream());
        // the next copy goes where the block before this one was, and the work on that has been enqueued
        transfers_.follow(ctx_.stream());
        return block;
    }

private:
    Context<Cuda>& ctx_;
    const MatrixFile& file_;
    StreamTimes& times_;
    Matrix<T, Cuda> buffers_[2];
    int turn_ = 0;
    Context<Cuda> transfers_;  // waits for its copies at its end, before the buffers go
};

/// The time that a context's work on blocks takes on the GPU.
class GpuWork {
public:
    GpuWork(Context<Cuda>& ctx, double& seconds) : ctx_(ctx), seconds_(seconds) {}
    /// Calls `f()`, which enqueues the work on a block, once that on the one before is done.
    template <class F>
    void run(F&& f) {
        finish();
        timer_.emplace(ctx_);
        f();
        timer_->stop();
    }
    /// Waits for the work.
    void finish() {
        if (timer_) seconds_ += timer_->seconds();
        timer_.reset();
    }

private:
    Context<Cuda>& ctx_;
    double& seconds_;
    std::optional<WorkTimer<Cuda>> timer_;
};

/// R of all rows of the file, in one pass through the GPU.
template <class T>
Matrix<T> stream_r(Context<Cuda>& ctx, const MatrixFile& file, RowBlocks blocks, const std::string& label,
                   StreamTimes& times) {
    StreamingR<T, Cuda> stream(ctx, file.cols());
    GpuRows<T> reader(ctx, file, blocks, times);
    GpuWork work(ctx, times.computing);
    for_each_block(label, blocks, Order::Forward, [&](Range rows) {
        const MatrixView<const T, Cuda> A = reader.read(rows);
        work.run([&] { naming_file(file.path(), rows.begin, [&] { stream.append(ctx, A); }); });
    });
    work.finish();
    return copy_to_host<T>(ctx, stream.r(ctx).view());
}

/// Takes rows of Q, the first of which is number `first`, and R.
template <class T>
using TakeRows = std::function<void(Index first, MatrixView<const T> Q, const Matrix<T>& R)>;

/// R of all rows of the file, and before that the rows of thin Q for `take`, in two passes through the GPU.
template <class T>
Matrix<T> stream_qr(Context<Cuda>& ctx, const MatrixFile& file, RowBlocks blocks, const TakeRows<T>& take,
                    StreamTimes& times) {
    StreamingQR<T, Cuda> stream(ctx, file.cols());
    GpuRows<T> reader(ctx, file, blocks, times);
    GpuWork work(ctx, times.computing);
    MatrixView<const T, Cuda> A;
    for_each_block("pass 1 of 2: R", blocks, Order::Forward, [&](Range rows) {
        A = reader.read(rows);
        work.run([&] { naming_file(file.path(), rows.begin, [&] { stream.append(ctx, A); }); });
    });
    work.finish();
    Matrix<T> R = copy_to_host<T>(ctx, stream.r(ctx).view());
    // the last block is still there
    for_each_block("pass 2 of 2: Q", blocks, Order::Reverse, [&](Range rows) {
        Matrix<T, Cuda> Q;
        work.run([&] { Q = stream.q_rows(ctx, A); });
        if (rows.begin > 0) A = reader.read(blocks.block(rows.begin / blocks.block_rows - 1));
        work.finish();
        const Stopwatch watch;
        double writing = 0;
        copy_rows_to_host<T>(ctx, std::as_const(Q).view(), [&](Range r, MatrixView<const T> piece) {
            throw_if_interrupted();
            const Stopwatch writing_watch;
            take(rows.begin + r.begin, piece, R);
            writing += writing_watch.seconds();
        });
        times.writing += writing;
        times.from_gpu += watch.seconds() - writing;
    });
    return R;
}
#endif

}  // namespace quoin::cli
