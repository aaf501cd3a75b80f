#include "factor_file_by_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "byte_size.hpp"
#include "flop_counts.hpp"
#include "input_matrix.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "memory_cap.hpp"
#include "output_files.hpp"
#include "progress_bar.hpp"
#include "quoin/distributed.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"
#include "streamed_accuracy.hpp"

namespace quoin::cli {

namespace {

/// Returns the memory of the process that needs most, with its rows in memory. Processes with fewer than n rows lend
/// them to one that has n.
template <class T>
double bytes_in_memory(const Context<Host>& ctx, int ranks, Index m, Index n, Options options) {
    if (m < n) return 3 * sizeof(T) * static_cast<double>(m) * static_cast<double>(n);
    return plan_ranks<T>(ctx, m, n, n == 0 ? ranks : static_cast<int>(std::min<Index>(ranks, m / n)), options)
        .memory_bytes;
}

/// Returns the sum of x over all processes.
double sum(RankSession& ranks, double x) {
    Context<Host> host(1);
    ranks.comm().all_reduce<double>(host, {&x, 1, 1});
    return x;
}

template <class T>
void measure_rows(RankSession& ranks, const FactorFiles& files, const CommonArguments& common, const MatrixFile& A,
                  const FileQR<T>& f, std::optional<StreamedAccuracy<T>>& accuracy) {
    if (!files.verify) return;
    const FilePlan& plan = f.plan();
    Context<Host> host = make_context(common);
    ranks.together([&] {
        const MatrixFile Q_file(f.q_path());
        const Matrix<T> R = MatrixFile(f.r_path()).read<T>();
        accuracy.emplace(plan.cols, plan.cols);
        const RowBlocks blocks{plan.rows, std::max<Index>(1, (Index{1} << 20) / plan.cols)};
        for_each_block("verifying", blocks, [&](Range r) {
            const Range rows{plan.first_row + r.begin, plan.first_row + r.end};
            Matrix<T> A_rows(rows.size(), plan.cols), Q_rows(rows.size(), plan.cols);
            read_rows<T>(A, rows, A_rows.view());
            read_rows<T>(Q_file, rows, Q_rows.view());
            accuracy->add(host, std::as_const(A_rows).view(), std::as_const(Q_rows).view(), R.view());
        });
    });
    accuracy->add_ranks(host, ranks.comm());
}

}  // namespace

template <class T>
std::optional<FileOptions> files_beside_ranks(Context<Host>& ctx, RankSession& ranks, const FactorFiles& files,
                                              const CommonArguments& common, const MatrixFile& file, double cap) {
    const Index m = file.rows(), n = file.cols();
    FileOptions options = files.file_options();
    options.memory = cap;
    Options in_memory = common.options;
    in_memory.q = options.want_q ? QForm::Explicit : QForm::None;
    bool fits = false;
    ranks.together([&] {
        const double bytes = bytes_in_memory<T>(ctx, ranks.size(), m, n, in_memory) + reader_bytes(file);
        fits = bytes <= cap;
        if (fits) return;
        const Method method = in_memory.method;
        const bool by_files =
            file.streams() && m / ranks.size() > n && n > 0 && (method == Method::Auto || method == Method::TSQR);
        double least = bytes;
        if (by_files) {
            const auto needed = [&](const FileOptions& o) {
                return plan_file_qr<T>(ctx, m, n, o, ranks.size(), ranks.rank()).memory_bytes;
            };
            if (needed(options) <= cap) return;
            FileOptions none = options;
            none.memory = 0;
            least = std::min(least, needed(none));
        }
        refuse_memory_cap(file.path(), cap, least,
                          fmt::format("for one of {} processes and a {} x {} {} matrix", ranks.size(), m, n,
                                      to_string(file.dtype())));
    });
    if (ranks.everywhere(fits)) return std::nullopt;
    return options;
}

template <class T>
void factor_file_by_ranks(Context<Host>& ctx, RankSession& ranks, const FactorFiles& files,
                          const CommonArguments& common, const MatrixFile& file, const FileOptions& options) {
    const Index m = file.rows(), n = file.cols();
    std::optional<OutputDirectory> directory;
    std::string written;
    ranks.together([&] {
        if (ranks.rank() != 0) return;
        directory.emplace(files.out, std::vector{file_of_matrix(files.input)});
        written = directory->file("R.npy") + (files.r_only ? "" : ", " + directory->file("Q.npy"));
        directory->refuse_leftovers(every_output);
    });

    FileQR<T> f(ctx, ranks.comm(), file.path(), files.out, options);
    const double steps = sum(ranks, static_cast<double>(f.plan().steps()));
    const double first_step = sum(ranks, static_cast<double>(f.steps_done()));
    if (ranks.rank() == 0 && first_step > 0) {
        fmt::print(stderr, "quoin: going on from {}: {} of {} steps are done (--restart factors from the start)\n",
                   f.journal_folder(), first_step, steps);
    }
    try {
        const Stopwatch watch;
        const ProgressBar bar(
            "factoring", [&] { return f.fraction(); },
            [&] { return fmt::format("{:.2f} GB/s a process", 1e-9 * f.bytes_moved() / watch.seconds()); });
        f.run(ctx);
    } catch (const Error& e) {
        // after a lost message the processes are not together any more
        if (e.code() == ErrorCode::NonFiniteEntry || e.code() == ErrorCode::CommunicationFailure) throw;
        const double done = sum(ranks, static_cast<double>(f.steps_done()));
        if (ranks.rank() == 0 && done > 0) {
            fmt::print(stderr, "quoin: {} of {} steps are kept in {}: the same command goes on from there\n", done,
                       steps, f.journal_folder());
        }
        throw;
    }
    std::optional<StreamedAccuracy<T>> accuracy;
    measure_rows<T>(ranks, files, common, file, f, accuracy);
    ranks.together([] { throw_if_interrupted(); });
    f.commit(!files.r_only);
    const FileReport& report = f.report();
    const double bytes_read = sum(ranks, report.bytes_read), bytes_written = sum(ranks, report.bytes_written);
    if (ranks.rank() != 0) return;
    directory->keep();

    const double flops = options.want_q ? thin_qr_flops(m, n) : factor_flops(m, n);
    const double gflops = 1e-9 * flops / std::max(report.seconds, 1e-9);
    if (common.json) {
        JsonLine line;
        line.add("rows", m).add("cols", n).add("dtype", to_string(file.dtype())).add("ranks", Index{ranks.size()});
        line.add("method", "streaming-tsqr").add("seconds", report.seconds).add("gflops", gflops);
        line.add("blocks", f.plan().blocks).add("block", f.plan().block);
        line.add("first_step", first_step).add("steps", steps);
        line.add("bytes_read", bytes_read).add("bytes_written", bytes_written);
        line.add("read_seconds", report.read_seconds).add("write_seconds", report.write_seconds);
        if (accuracy) line.add("residual", accuracy->residual()).add("orthogonality", accuracy->orthogonality());
        return line.print();
    }
    fmt::print("{}: {} x {} {}\n", file.path(), m, n, to_string(file.dtype()));
    fmt::print("ranks          {}, with {} to {} rows and {} threads each\n", ranks.size(), m / ranks.size(),
               (m + ranks.size() - 1) / ranks.size(), ctx.threads());
    const std::string choices = to_string(f.plan());
    fmt::print("method         streaming-tsqr\n");
    fmt::print("streamed       by each in {}, within {}\n", choices.substr(0, choices.find('\n')),
               format_given_size(options.memory));
    fmt::print("files          {} read, {} written\n", format_byte_size(bytes_read), format_byte_size(bytes_written));
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s\n", report.seconds, gflops);
    if (accuracy) print_accuracy(accuracy->residual(), accuracy->orthogonality());
    fmt::print("wrote          {}\n", written);
}

#define QUOIN_INSTANTIATE(T)                                                                                        \
    template std::optional<FileOptions> files_beside_ranks<T>(Context<Host>&, RankSession&, const FactorFiles&,     \
                                                              const CommonArguments&, const MatrixFile&, double);   \
    template void factor_file_by_ranks<T>(Context<Host>&, RankSession&, const FactorFiles&, const CommonArguments&, \
                                          const MatrixFile&, const FileOptions&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cli
