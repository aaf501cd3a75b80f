#include "factor_by_ranks.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>

#include "byte_size.hpp"
#include "flop_counts.hpp"
#include "input_matrix.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "quoin/distributed.hpp"
#include "quoin/rows.hpp"
#include "stopwatch.hpp"
#include "streamed_accuracy.hpp"

namespace quoin::cli {

namespace {

/// R.npy and Q.npy of rank 0; the others write their rows of Q into its unfinished file.
template <class T>
struct Outputs {
    Outputs(const FactorFiles& files, Index m, Index n)
        : directory(files.out, {file_of_matrix(files.input)}), r(directory.file("R.npy"), std::min(m, n), n) {
        if (!files.r_only) q.emplace(directory.file("Q.npy"), m, std::min(m, n));
        directory.refuse_leftovers(every_output);
    }
    OutputDirectory directory;
    NpyRowWriter<T> r;
    std::optional<NpyRowWriter<T>> q;
};

}  // namespace

void add_rank_method(CLI::App& command, Options& options) {
    add_choice(command, "--method", options.method,
               {Method::Auto, Method::TSQR, Method::CholeskyQR2, Method::RandomizedCholeskyQR},
               "Method: auto, tsqr, cholesky-qr2 or randomized-cholesky-qr (default: auto)");
}

template <class T, class D>
void factor_by_ranks(Context<D>& ctx, RankSession& ranks, const FactorFiles& files, const CommonArguments& common,
                     const MatrixFile& file, const std::string& unit) {
    const Index m = file.rows(), n = file.cols();
    const Range rows = rows_of_rank(m, ranks.size(), ranks.rank());
    Communicator& comm = ranks.comm();
    Options options = common.options;
    options.q = files.r_only && !files.verify ? QForm::None : QForm::Explicit;

    std::optional<Outputs<T>> outputs;
    Matrix<T, D> A;
    const auto read = [&](Range r, MatrixView<T> block) {
        throw_if_interrupted();
        file.read_rows<T>({rows.begin + r.begin, rows.begin + r.end}, block);
    };
    Stopwatch watch;
    ranks.together([&] {
        if (ranks.rank() == 0) outputs.emplace(files, m, n);
        A = Matrix<T, D>(ctx, rows.size(), n);
        copy_rows_to_device<T>(ctx, read, A.view());
    });
    const double read_seconds = watch.seconds();

    DeviceInUse device;
    device.start_up_seconds = 0;
    load_kernels<T>(ctx, m / ranks.size(), n, device, [&](MatrixView<const T, D> small) {
        auto warm = qr<T, D>(ctx, comm, small, options);
        if (options.q == QForm::Explicit) std::move(warm).take_q(ctx);
    });

    watch = {};
    const Traffic before = comm.traffic();
    auto f = [&] {
        try {
            return qr<T, D>(ctx, comm, std::as_const(A).view(), options);
        } catch (const NonFiniteEntry& e) {
            // all have it, with the row within the rows of one of them
            ranks.together([&] {
                if (e.row >= A.rows()) return;
                Matrix<T> storage;
                const auto entry = std::as_const(A).view().block({e.row, e.row + 1}, {e.col, e.col + 1});
                if (!std::isfinite(on_host<T>(ctx, entry, storage)(0, 0)))
                    throw NonFiniteEntry(rows.begin + e.row, e.col, file.path());
            });
            throw;
        }
    }();
    const Matrix<T, D> R_there = f.r(ctx, files.verify ? Ranks::All : Ranks::Root);
    Matrix<T, D> Q;
    if (options.q == QForm::Explicit) Q = std::move(f).take_q(ctx);
    ctx.wait();
    const double seconds = watch.seconds();
    const Traffic after = comm.traffic();
    A = {};
    Matrix<T> R_storage;
    const MatrixView<const T> R = on_host<T>(ctx, R_there.view(), R_storage);

    watch = {};
    std::optional<StreamedAccuracy<T>> accuracy;
    Context<Host> host = make_context(common);
    const std::string path =
        files.r_only ? "" : ranks.text_of(0, ranks.rank() == 0 ? outputs->q->unfinished_path() : "");
    ranks.together([&] {
        if (files.verify) accuracy.emplace(std::min(m, n), n);
        Matrix<T> block_of_a;
        copy_rows_to_host<T>(ctx, std::as_const(Q).view(), [&](Range r, MatrixView<const T> block) {
            throw_if_interrupted();
            if (!path.empty()) write_npy_rows<T>(path, m, rows.begin + r.begin, block);
            if (!accuracy) return;
            block_of_a = Matrix<T>(block.rows, n);
            read(r, block_of_a.view());
            accuracy->add(host, std::as_const(block_of_a).view(), block, R);
        });
    });
    if (accuracy) accuracy->add_ranks(host, comm);
    std::string written;
    ranks.together([&] {
        throw_if_interrupted();
        if (ranks.rank() != 0) return;
        outputs->r.write_rows(0, R);
        if (outputs->q) {
            outputs->q->count_rows(m);
            outputs->q->commit();
            written = outputs->directory.file("Q.npy") + ", ";
        }
        outputs->r.commit();
        written += outputs->directory.file("R.npy");
        outputs->directory.keep();
    });
    const double write_seconds = watch.seconds();
    if (ranks.rank() != 0) return;

    const double gflops =
        1e-9 * (options.q == QForm::None ? factor_flops(m, n) : thin_qr_flops(m, n)) / std::max(seconds, 1e-9);
    const Index messages = after.messages_sent - before.messages_sent, words = after.words_sent - before.words_sent;
    const Report& report = f.report();
    constexpr bool on_gpus = !std::is_same_v<D, Host>;
    if (common.json) {
        JsonLine line;
        line.add("rows", m).add("cols", n).add("dtype", to_string(file.dtype())).add("ranks", Index{ranks.size()});
        line.add("method", to_string(report.method)).add("seconds", seconds).add("gflops", gflops);
        line.add("messages_sent", messages).add("words_sent", words);
        line.add("read_seconds", read_seconds).add("write_seconds", write_seconds);
        if (on_gpus) line.add("start_up_seconds", device.start_up_seconds);
        if (accuracy) line.add("residual", accuracy->residual()).add("orthogonality", accuracy->orthogonality());
        line.print();
        return;
    }
    fmt::print("{}: {} x {} {}\n", file.path(), m, n, to_string(file.dtype()));
    fmt::print("ranks          {}, with {} to {} rows and {}\n", ranks.size(), m / ranks.size(),
               (m + ranks.size() - 1) / ranks.size(), unit);
    fmt::print("method         {}{}\n", to_string(report.method),
               report.fell_back ? " (cholesky-qr2 could not certify its answer)" : "");
    if (on_gpus) fmt::print("start-up       {:.3g} s\n", device.start_up_seconds);
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s; reading {:.3g} s, {} {:.3g} s\n", seconds, gflops,
               read_seconds, accuracy ? "writing and verifying" : "writing", write_seconds);
    fmt::print("rank 0 sent    {} messages, {}\n", messages, format_byte_size(static_cast<double>(words) * sizeof(T)));
    if (accuracy) print_accuracy(accuracy->residual(), accuracy->orthogonality());
    fmt::print("wrote          {}\n", written);
}

#define QUOIN_INSTANTIATE(T, D)                                                                                \
    template void factor_by_ranks<T, D>(Context<D>&, RankSession&, const FactorFiles&, const CommonArguments&, \
                                        const MatrixFile&, const std::string&);
QUOIN_INSTANTIATE(float, Host)
QUOIN_INSTANTIATE(double, Host)
#ifdef QUOIN_HAVE_CUDA
QUOIN_INSTANTIATE(float, Cuda)
QUOIN_INSTANTIATE(double, Cuda)
#endif
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cli
