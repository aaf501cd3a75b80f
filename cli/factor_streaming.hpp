#pragma once

#include <atomic>
#include <optional>

#include "factor_outputs.hpp"
#include "factor_report.hpp"
#include "naming_file.hpp"
#include "stopwatch.hpp"
#include "streamed_accuracy.hpp"
#include "streams.hpp"

namespace quoin::cli {

/// By blocks of rows through a GPU; the accuracy is measured on the host.
template <class T>
FactorOutcome factor_streaming(Context<Cuda>& ctx, const MatrixFile& file, const StreamPlan& plan, bool verify,
                               FactorOutputs<T>& outputs) {
    FactorOutcome outcome{"streaming-tsqr"};
    std::optional<StreamedAccuracy<T>> accuracy;
    if (verify) accuracy.emplace(std::min(file.rows(), file.cols()), file.cols());
    Context<Host> host;
    Matrix<T> R;
    double verify_seconds = 0;
    const auto take = [&](Range rows, MatrixView<const T> Q) {
        throw_if_interrupted();
        if (outputs.q) outputs.q->write_rows(rows.begin, Q);
        if (!accuracy) return;
        const Stopwatch watch;
        Matrix<T> A(Q.rows, Q.cols);
        read_rows<T>(file, rows, A.view());
        accuracy->add(host, std::as_const(A).view(), Q, R.view());
        verify_seconds += watch.seconds();
    };
    const Stopwatch watch;
    const auto factor = [&] {
        if (!plan.with_q) {
            const StreamingR<T, Cuda> stream = stream_r<T>(ctx, file, plan.blocks, "factoring");
            R = copy_to_host<T>(ctx, stream.r(ctx).view());
            return stream.times();
        }
        StreamingQR<T, Cuda> stream(ctx, file.cols());
        for_each_block("pass 1 of 2: R", plan.blocks, [&](Range rows) {
            naming_file(file.path(), rows.begin, [&] { stream.append(ctx, rows.size(), reader_of<T>(file)); });
        });
        R = copy_to_host<T>(ctx, stream.r(ctx).view());
        std::atomic<Index> rows_done{0};
        const ProgressBar bar("pass 2 of 2: Q",
                              [&] { return static_cast<double>(rows_done) / static_cast<double>(file.rows()); });
        stream.q(ctx, reader_of<T>(file), [&](Range rows, MatrixView<const T> Q) {
            take(rows, Q);
            rows_done += rows.size();
        });
        return stream.times();
    };
    StreamTimes& times = outcome.stream.emplace(factor());
    outcome.seconds = watch.seconds() - verify_seconds;
    times.writing -= verify_seconds;
    write_matrix<T>(host, *outputs.r, "R.npy", R.view());
    outcome.transfer_in_seconds = times.reading + times.to_device;
    outcome.transfer_out_seconds = times.writing + times.from_device;
    if (accuracy) {
        outcome.orthogonality = accuracy->orthogonality();
        outcome.residual = accuracy->residual();
    }
    return outcome;
}

}  // namespace quoin::cli
