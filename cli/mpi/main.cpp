// `quoin` of several processes: what `mpiexec -n 4 quoin …` runs.

#include <fmt/format.h>
#include <sysexits.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "byte_size.hpp"
#include "factor_by_ranks.hpp"
#include "factor_file_by_ranks.hpp"
#include "input_matrix.hpp"
#include "interrupt.hpp"
#include "memory_cap.hpp"
#include "mpi_session.hpp"
#include "on_device.hpp"
#include "program.hpp"
#include "quoin/mpi.hpp"
#include "tracing.hpp"
#ifdef QUOIN_HAVE_NCCL
#include "quoin/nccl.hpp"
#endif

namespace quoin::cli {

namespace {

struct FactorArguments : FactorFiles {
    CommonArguments common;
    MatrixFileOptions reading;
};

#ifdef QUOIN_HAVE_CUDA
void factor_on_gpus(const MpiSession& mpi, RankSession& ranks, const FactorArguments& arguments, const MatrixFile& file,
                    int gpus) {
    const CurrentDevice gpu(mpi.place() % gpus);
    Context<Cuda> ctx;
    const InterruptGuard guard(ctx);
    const auto factor = [&](RankSession& by, const char* unit) {
        const Tracing tracing(ctx, arguments.common.trace);
        with_dtype(file.dtype(),
                   [&]<class T>(T) { factor_by_ranks<T>(ctx, by, arguments, arguments.common, file, unit); });
        tracing.write(by.comm());
    };
#ifdef QUOIN_HAVE_NCCL
    if (ranks.everywhere(mpi.neighbours() <= gpus)) {
        NcclCommunicator nccl(ranks.comm());
        RankSession by_nccl(nccl);
        return factor(by_nccl, "a GPU each");
    }
#endif
    factor(ranks, "a GPU, which several may share");
}
#endif

void add_factor(CLI::App& program, const std::optional<MpiSession>& session) {
    auto arguments = std::make_shared<FactorArguments>();
    CLI::App& command = *program.add_subcommand(
        "factor",
        "Factor A = QR by several processes, and write R.npy and Q.npy.\n"
        "\n"
        "Each process reads its share of the rows of A, and the shares are factored together: by cholesky-qr2 where\n"
        "it is certified, otherwise by tsqr, whose tree has the processes as its top levels. Process 0 writes R.npy;\n"
        "every process writes its rows of Q.npy. All processes need the files of A and of --out, and memory for\n"
        "their rows of A and Q. What one process cannot do is an error of all.\n"
        "\n"
        "If the rows of a process do not fit --memory, each process takes its rows block by block from the .npy file\n"
        "to the outputs. The folder quoin-journal in --out records what is done. If the run ends early, for whatever\n"
        "reason, the same command with as many processes continues it. A run in memory leaves nothing when it is\n"
        "stopped.\n"
        "\n"
        "With --device cuda each process computes on a GPU: on one of its own, connected by NCCL, if the machine has\n"
        "as many; otherwise the processes share them, and messages go through the host.");
    add_factor_files(command, *arguments);
    add_byte_size_argument(command, "--memory", arguments->memory,
                           "Most memory of one process for matrices, such as 2GiB, 1.5GiB, 800MB or plain bytes; with\n"
                           "--device cuda it has no effect (default: its share of three quarters of what is\n"
                           "available)");
    add_file_route(command, *arguments);
    add_reading_arguments(command, arguments->reading);
    add_trace_argument(command, arguments->common.trace);
    add_common_arguments(command, arguments->common, /*algorithm=*/false);
    add_rank_method(command, arguments->common.options);
    add_device_argument(command, arguments->common.device);
    command.footer(
        "Example:  mpiexec -n 4 quoin factor A.npy --out factors --threads 2\n"
        "\n"
        "--threads are those of one process (default: the cores that it may use, shared among the processes that\n"
        "may use the same). --json prints rows, cols, dtype, ranks, method, seconds, gflops, messages_sent and\n"
        "words_sent (of process 0), read_seconds and write_seconds; --verify adds residual and orthogonality. From\n"
        "file to file it has blocks, block (its rows), first_step, steps, bytes_read and bytes_written in place of\n"
        "the messages.");
    command.callback([arguments, &session] {
        const MpiSession& mpi = *session;
        if (arguments->common.threads == 0 && !std::getenv("OMP_NUM_THREADS")) arguments->common.threads = mpi.cores();
        MpiCommunicator comm(MPI_COMM_WORLD);
        RankSession ranks(comm);
        std::optional<MatrixFile> file;
        ranks.together([&] {
            if (arguments->input == "-")
                throw InvalidArgument("several processes cannot read standard input: name a file");
            file.emplace(open_matrix(arguments->input, arguments->reading, 0));
        });
        if (arguments->common.device != Device::Host) {
            int gpus = 0;
#ifdef QUOIN_HAVE_CUDA
            gpus = static_cast<int>(survey_gpus().gpus.size());
            if (ranks.everywhere(gpus > 0)) return factor_on_gpus(mpi, ranks, *arguments, *file, gpus);
#endif
            ranks.together([&] {
                if (arguments->common.device == Device::Cuda && gpus == 0) refuse_gpu("there is no usable GPU");
            });
        }
        Context<Host> ctx = make_context(arguments->common);
        const InterruptGuard guard(ctx);
        const Tracing tracing(ctx, arguments->common.trace);
        const double cap =
            arguments->memory > 0 ? static_cast<double>(arguments->memory) : memory_cap(0) / mpi.neighbours();
        with_dtype(file->dtype(), [&]<class T>(T) {
            if (const auto options = files_beside_ranks<T>(ctx, ranks, *arguments, arguments->common, *file, cap)) {
                return factor_file_by_ranks<T>(ctx, ranks, *arguments, arguments->common, *file, *options);
            }
            factor_by_ranks<T>(ctx, ranks, *arguments, arguments->common, *file,
                               fmt::format("{} threads each", ctx.threads()));
        });
        tracing.write(comm);
    });
}

}  // namespace

}  // namespace quoin::cli

int main(int argc, char** argv) {
    using namespace quoin::cli;
    let_waiting_threads_sleep(argv);
    std::optional<MpiSession> mpi;
    if (argc < 2 || std::string(argv[1]) != "--describe") mpi.emplace();  // a build runs this, without mpiexec
    // process 0 prints for all
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
