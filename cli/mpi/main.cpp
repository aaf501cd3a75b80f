// `quoin` of several processes: what `mpiexec -n 4 quoin …` runs.

#include <fmt/format.h>
#include <sysexits.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "all_ranks.hpp"
#include "arguments.hpp"
#include "byte_size.hpp"
#include "factor_files.hpp"
#include "flop_counts.hpp"
#include "input_matrix.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "output_files.hpp"
#include "program.hpp"
#include "quoin/distributed.hpp"
#include "quoin/io.hpp"
#include "quoin/mpi.hpp"
#include "stopwatch.hpp"
#include "streamed_accuracy.hpp"

namespace quoin::cli {

namespace {

struct FactorArguments : FactorFiles {
    CommonArguments common;
    MatrixFileOptions reading;
};

/// R.npy and Q.npy of process 0; the others write their rows of Q into its unfinished file.
template <class T>
struct Outputs {
    Outputs(const FactorArguments& arguments, Index m, Index n)
        : directory(arguments.out, {file_of_matrix(arguments.input)}), r(directory.file("R.npy"), std::min(m, n), n) {
        if (!arguments.r_only) q.emplace(directory.file("Q.npy"), m, std::min(m, n));
        directory.refuse_leftovers(every_output);
    }
    OutputDirectory directory;
    NpyRowWriter<T> r;
    std::optional<NpyRowWriter<T>> q;
};

template <class T>
void factor(const MpiSession& mpi, const FactorArguments& arguments, const MatrixFile& file) {
    const Index m = file.rows(), n = file.cols();
    const Range rows{m / mpi.size() * mpi.rank() + std::min<Index>(m % mpi.size(), mpi.rank()),
                     m / mpi.size() * (mpi.rank() + 1) + std::min<Index>(m % mpi.size(), mpi.rank() + 1)};
    Context<Host> ctx = make_context(arguments.common);
    const InterruptGuard guard(ctx);
    MpiCommunicator comm(MPI_COMM_WORLD);
    Options options = arguments.common.options;
    options.q = arguments.r_only && !arguments.verify ? QForm::None : QForm::Explicit;

    std::optional<Outputs<T>> outputs;
    Matrix<T> A;
    Stopwatch watch;
    mpi.together([&] {
        if (mpi.rank() == 0) outputs.emplace(arguments, m, n);
        A = Matrix<T>(rows.size(), n);
        file.read_rows<T>(rows, A.view());
    });
    const double read_seconds = watch.seconds();

    watch = {};
    auto f = [&] {
        try {
            return qr<T, Host>(ctx, comm, std::as_const(A).view(), options);
        } catch (const NonFiniteEntry& e) {
            // all have it, with the row within the rows of one of them
            mpi.together([&] {
                if (e.row < A.rows() && !std::isfinite(A(e.row, e.col)))
                    throw NonFiniteEntry(rows.begin + e.row, e.col, file.path());
            });
            throw;
        }
    }();
    const Matrix<T> R = f.r(ctx, arguments.verify ? Ranks::All : Ranks::Root);
    Matrix<T> Q;
    if (options.q == QForm::Explicit) Q = std::move(f).take_q(ctx);
    const double seconds = watch.seconds();
    const Traffic traffic = comm.traffic();
    std::optional<StreamedAccuracy<T>> accuracy;
    if (arguments.verify) {
        mpi.together([&] {
            accuracy.emplace(std::min(m, n), n);
            accuracy->add(ctx, std::as_const(A).view(), Q.view(), R.view());
        });
        accuracy->add_ranks(ctx, comm);
    }
    A = {};

    watch = {};
    if (!arguments.r_only) {
        const std::string path = mpi.text_of(0, mpi.rank() == 0 ? outputs->q->unfinished_path() : "");
        mpi.together([&] { write_npy_rows<T>(path, m, rows.begin, std::as_const(Q).view()); });
    }
    std::string written;
    mpi.together([&] {
        throw_if_interrupted();
        if (mpi.rank() != 0) return;
        outputs->r.write_rows(0, R.view());
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
    if (mpi.rank() != 0) return;

    const double gflops =
        1e-9 * (options.q == QForm::None ? factor_flops(m, n) : thin_qr_flops(m, n)) / std::max(seconds, 1e-9);
    const Report& report = f.report();
    if (arguments.common.json) {
        JsonLine line;
        line.add("rows", m).add("cols", n).add("dtype", to_string(file.dtype())).add("ranks", Index{mpi.size()});
        line.add("method", to_string(report.method)).add("seconds", seconds).add("gflops", gflops);
        line.add("messages_sent", traffic.messages_sent).add("words_sent", traffic.words_sent);
        line.add("read_seconds", read_seconds).add("write_seconds", write_seconds);
        if (accuracy) line.add("residual", accuracy->residual()).add("orthogonality", accuracy->orthogonality());
        line.print();
        return;
    }
    fmt::print("{}: {} x {} {}\n", file.path(), m, n, to_string(file.dtype()));
    fmt::print("ranks          {}, with {} to {} rows and {} threads each\n", mpi.size(), m / mpi.size(),
               (m + mpi.size() - 1) / mpi.size(), ctx.threads());
    fmt::print("method         {}{}\n", to_string(report.method),
               report.fell_back ? " (cholesky-qr2 could not certify its answer)" : "");
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s; reading {:.3g} s, writing {:.3g} s\n", seconds, gflops,
               read_seconds, write_seconds);
    fmt::print("rank 0 sent    {} messages, {}\n", traffic.messages_sent,
               format_byte_size(static_cast<double>(traffic.words_sent) * sizeof(T)));
    if (accuracy) print_accuracy(accuracy->residual(), accuracy->orthogonality());
    fmt::print("wrote          {}\n", written);
}

void add_factor(CLI::App& program, const std::optional<MpiSession>& session) {
    auto arguments = std::make_shared<FactorArguments>();
    CLI::App& command = *program.add_subcommand(
        "factor",
        "Factor A = QR by several processes, and write R.npy and Q.npy.\n"
        "\n"
        "Each process reads its share of the rows of A, and the shares are factored together: by cholesky-qr2 where\n"
        "it is certified, otherwise by tsqr, whose tree has the processes as its top levels. Process 0 writes R.npy;\n"
        "every process writes its rows of Q.npy. All processes need the files of A and of --out, and memory for\n"
        "their rows of A and Q. What one process cannot do is an error of all. A run that is stopped leaves no file.");
    add_factor_files(command, *arguments);
    add_reading_arguments(command, arguments->reading);
    add_common_arguments(command, arguments->common, /*algorithm=*/false);
    add_choice(command, "--method", arguments->common.options.method,
               {Method::Auto, Method::TSQR, Method::CholeskyQR2, Method::ShiftedCholeskyQR3},
               "Method: auto, tsqr, cholesky-qr2 or shifted-cholesky-qr3 (default: auto)");
    command.footer(
        "Example:  mpiexec -n 4 quoin factor A.npy --out factors --threads 2\n"
        "\n"
        "--threads are those of one process (default: the cores that it may use, shared among the processes that\n"
        "may use the same). --json prints rows, cols, dtype, ranks, method, seconds, gflops, messages_sent and\n"
        "words_sent (of process 0), read_seconds and write_seconds; --verify adds residual and orthogonality.");
    command.callback([arguments, &session] {
        const MpiSession& mpi = *session;
        if (arguments->common.threads == 0 && !std::getenv("OMP_NUM_THREADS")) arguments->common.threads = mpi.cores();
        std::optional<MatrixFile> file;
        mpi.together([&] {
            if (arguments->input == "-")
                throw InvalidArgument("several processes cannot read standard input: name a file");
            file.emplace(open_matrix(arguments->input, arguments->reading, 0));
        });
        with_dtype(file->dtype(), [&]<class T>(T) { factor<T>(mpi, *arguments, *file); });
    });
}

}  // namespace

}  // namespace quoin::cli

int main(int argc, char** argv) {
    using namespace quoin::cli;
    let_waiting_threads_sleep(argv);
    std::optional<MpiSession> mpi;
    if (argc < 2 || std::string(argv[1]) != "--describe") mpi.emplace();  // a build asks for that, without mpiexec
    // what all have to say is said by process 0
    if (mpi && mpi->rank() != 0 && (!std::freopen("/dev/null", "w", stdout) || !std::freopen("/dev/null", "w", stderr)))
        return EX_OSERR;
    Program program(
        "Quoin with several processes, started by mpiexec: the rows of a matrix are spread over them.\n"
        "`mpiexec -n 4 quoin factor …` runs this program.",
        "quoin-mpi");
    program.require_subcommand(1);
    program.footer("Exit codes: " + exit_codes());
    add_factor(program, mpi);
    const bool unknown = argc > 1 && argv[1][0] != '-' && std::string(argv[1]) != "factor";
    if (unknown)
        fmt::print(stderr, "quoin: several processes together have the command factor alone, not '{}'\n", argv[1]);
    const int exit_code = unknown ? EX_USAGE : program.run(argc, argv);
    std::fflush(stdout);
    // mpiexec ends the others when one process fails
    if (mpi) mpi->wait_for_all();
    return exit_code;
}
