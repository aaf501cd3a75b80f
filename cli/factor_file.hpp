#pragma once

#include <fmt/format.h>

#include <optional>

#include "factor_report.hpp"
#include "file_accuracy.hpp"
#include "progress_bar.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

/// From file to file, by way of a journal.
template <class T, class D>
FactorOutcome factor_file(Context<D>& ctx, const MatrixFile& file, const FactorArguments& arguments,
                          const FileOptions& options) {
    std::optional<FileAccuracyPlan> accuracy;
    if (arguments.verify) accuracy = plan_file_accuracy<T>(file.path(), file.rows(), file.cols(), options.memory);
    FileQR<T, D> f(ctx, file.path(), arguments.out, options);
    FactorOutcome outcome;
    outcome.method = f.plan().route == FileRoute::RowBlocks ? "streaming-tsqr" : "left-looking";
    outcome.file_plan = f.plan();
    if (f.steps_done() > 0) {
        fmt::print(stderr, "quoin: going on from {}: {} of {} steps are done (--restart factors from the start)\n",
                   f.journal_folder(), f.steps_done(), f.plan().steps());
    }
    try {
        const Stopwatch watch;
        const ProgressBar bar(
            "factoring", [&] { return f.fraction(); },
            [&] { return fmt::format("{:.2f} GB/s", 1e-9 * f.bytes_moved() / watch.seconds()); });
        f.run(ctx);
    } catch (const Error& e) {
        if (f.steps_done() > 0 && e.code() != ErrorCode::NonFiniteEntry) {
            fmt::print(stderr, "quoin: {} of {} steps are kept in {}: the same command goes on from there\n",
                       f.steps_done(), f.plan().steps(), f.journal_folder());
        }
        throw;
    }
    outcome.file_report = f.report();
    outcome.seconds = f.report().seconds;
    if (!std::is_same_v<D, Host>) {
        outcome.transfer_in_seconds = f.report().read_seconds;
        outcome.transfer_out_seconds = f.report().write_seconds;
    }
    if (accuracy) {
        Context<Host> host = make_context(arguments.common);
        const FileAccuracy measured = measure_files<T>(host, file.path(), f.q_path(), f.r_path(), *accuracy);
        outcome.orthogonality = measured.orthogonality;
        outcome.residual = measured.residual;
    }
    throw_if_interrupted();
    f.commit(!arguments.r_only);
    return outcome;
}

}  // namespace quoin::cli
