#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "add_value.hpp"
#include "factor_file.hpp"
#include "factor_in_memory.hpp"
#include "flop_counts.hpp"
#include "input_matrix.hpp"
#include "on_device.hpp"
#include "routes.hpp"
#include "subcommands.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "factor_beyond_gpu.hpp"
#include "factor_streaming.hpp"
#endif
#ifdef QUOIN_HAVE_NCCL
#include "factor_by_ranks.hpp"
#include "quoin/nccl.hpp"
#endif

namespace quoin::cli {

namespace {

/// Returns the options of the factorization, on either device.
Options factor_options(const FactorArguments& arguments) {
    // Accuracy cannot be measured without Q.
    const bool form_q = !arguments.r_only || arguments.verify;
    Options options = arguments.common.options;
    const bool full = options.q.full_t.has_value();
    if (full && arguments.r_only)
        throw CLI::ValidationError("--r-only", "excludes --compact-wy full, which writes V and T");
    if (!full) options.q = form_q ? QForm::Explicit : QForm::None;
    options.pivoting = arguments.pivots.pivoting();
    return options;
}

/// Returns the options of the route, without its caps.
RouteOptions route_options(const FactorArguments& arguments, const MatrixFile& file) {
    RouteOptions options{.options = factor_options(arguments), .verify = arguments.verify};
    options.reader_bytes = reader_bytes(file);
    if (file.streams()) options.files = arguments.file_options();
    return options;
}

/// Returns the route within the caps of `arguments`. Throws if no route can do it.
template <class T, class D>
RoutePlan factor_route(const Context<D>& ctx, const FactorArguments& arguments, const MatrixFile& file) {
    constexpr bool on_host = std::is_same_v<D, Host>;
    RouteOptions options = route_options(arguments, file);
    options.memory = device_memory_cap(ctx, on_host ? arguments.memory : arguments.memory_on_gpu());
    if (!on_host) {
        if (arguments.memory_on_gpu() == 0) options.block_memory = 0.9 * options.memory;
        options.host_memory = memory_cap(arguments.memory_beside_gpu());
    }
    const RoutePlan route = [&] {
        try {
            return plan_route<T>(ctx, file.rows(), file.cols(), options);
        } catch (const OutOfMemory& refusal) {
            throw OutOfMemory(fmt::format("{}: --gpu-memory, or --memory alone: {}", file.path(), refusal.what()));
        }
    }();
    if (!on_host && !route.fits() && std::holds_alternative<Plan>(route.by)) {
        if (options.options.q.full_t)
            throw CLI::ValidationError("--compact-wy",
                                       "full needs the whole matrix in the GPU's memory, which it does not fit");
        throw CLI::ValidationError("--method", fmt::format("{} needs the whole matrix in the GPU's memory, which it "
                                                           "does not fit: take householder or cgs",
                                                           to_string(options.options.method)));
    }
    return within_cap(route, file.path(), {file.rows(), file.cols()}, scalar_kind<T>);
}

template <class T, class D>
void run_factor(Context<D>& ctx, DeviceInUse& device, const FactorArguments& arguments, const MatrixFile& file) {
    const Index m = file.rows(), n = file.cols();
    const QForm q = factor_options(arguments).q;
    const RoutePlan route = factor_route<T>(ctx, arguments, file);

    OutputDirectory directory(arguments.out, {file_of_matrix(arguments.input)});
    FactorOutcome outcome;
    if (const auto* files = std::get_if<FilesRoute>(&route.by)) {
        const std::string written = directory.file("R.npy") + (arguments.r_only ? "" : ", " + directory.file("Q.npy"));
        directory.refuse_leftovers(every_output);
        outcome = factor_file<T, D>(ctx, file, arguments, files->options);
        outcome.cap = route.cap;
        outcome.written = written;
    } else {
        const auto* stream = std::get_if<StreamPlan>(&route.by);
        FactorOutputs<T> outputs(directory, arguments, m, n);
        directory.refuse_leftovers(every_output);
        load_kernels<T>(ctx, m, n, device, [&](MatrixView<const T, D> small) {
            if (!stream) {
                qr<T, D>(ctx, small, options_for<T>(small, factor_options(arguments)));
            } else if (stream->with_q) {
                StreamingQR<T, D> both_passes(ctx, small.cols);
                both_passes.append(ctx, small);
                both_passes.q_rows(ctx, small);
            } else {
                StreamingR<T, D>(ctx, small.cols).append(ctx, small);
            }
        });
        outcome = [&] {
            if constexpr (!std::is_same_v<D, Host>) {
                if (const auto* beyond = std::get_if<OutOfCoreRoute>(&route.by))
                    return factor_beyond_gpu<T>(ctx, file, arguments, *beyond, outputs);
                if (stream) return factor_streaming<T>(ctx, file, *stream, arguments.verify, outputs);
            }
            return factor_in_memory<T>(ctx, file, std::get<Plan>(route.by), arguments.verify, outputs);
        }();
        outputs.commit();
        if (stream) outcome.streamed = *stream;
        outcome.written = outputs.names;
    }
    directory.keep();

    const double flops = q == QForm::Explicit ? thin_qr_flops(m, n) : factor_flops(m, n);
    outcome.gflops = 1e-9 * flops / outcome.seconds;
    print_report(arguments, file, device, outcome);
}

/// By several GPUs of this machine, a thread each.
void factor_on_gpus([[maybe_unused]] const FactorArguments& arguments, [[maybe_unused]] const MatrixFile& file) {
#ifdef QUOIN_HAVE_NCCL
    const int found = static_cast<int>(survey_gpus().gpus.size());
    if (found < arguments.gpus) refuse_gpu(fmt::format("--gpus is {}, and {} can be used", arguments.gpus, found));
    CommonArguments common = arguments.common;
    common.threads = std::max(1, make_context(common).threads() / arguments.gpus);
    run_ranks(arguments.gpus, [&](Communicator& control) {
        const CurrentDevice gpu(control.rank());
        NcclCommunicator comm(control);
        RankSession ranks(comm);
        Context<Cuda> ctx;
        std::optional<InterruptGuard> guard;
        if (ranks.rank() == 0) guard.emplace(ctx);  // the others hear of it
        with_dtype(file.dtype(),
                   [&]<class T>(T) { factor_by_ranks<T>(ctx, ranks, arguments, common, file, "a GPU each"); });
    });
#else
    refuse_gpu("Quoin was built without NCCL, which --gpus needs");
#endif
}

}  // namespace

void add_factor(CLI::App& program) {
    auto arguments = std::make_shared<FactorArguments>();
    CLI::App& command = *program.add_subcommand(
        "factor",
        "Factor A = QR and write R.npy and Q.npy.\n"
        "\n"
        "A is m x n; Q is its thin orthogonal factor, m x min(m, n); R is upper triangular or trapezoidal,\n"
        "min(m, n) x n. Outputs appear only when they are complete.\n"
        "\n"
        "A matrix larger than --memory goes block by block from its .npy file to the outputs: one pass over its rows\n"
        "gives R, a second one, backward, gives Q. The folder quoin-journal in --out records what is done. If the run\n"
        "ends early, for whatever reason, the same command continues it.\n"
        "\n"
        "With --device cuda everything is computed on a GPU. If its memory or --memory is too small for A, A passes\n"
        "through it by blocks of rows: the next block is read and copied while the GPU works on the last one. If the\n"
        "rows are too long for that, A stays in the host's memory and its columns are copied: by householder, or with\n"
        "--method cgs by recursive classical Gram-Schmidt (Zhang and Wu 2021). If A does not fit the host's memory\n"
        "either, householder takes it from file to file through both memories, with a journal.\n"
        "\n"
        "With --gpus several GPUs share the rows of a tall matrix: each reads its rows of the file, factors them with\n"
        "the others by cholesky-qr2 where it is certified, otherwise by tsqr, and writes its rows of Q.npy. They need\n"
        "memory for twice their rows.\n"
        "\n"
        "quoin never replaces the input. It refuses a folder that holds an output of a run with other options, if\n"
        "this run does not write that output.\n"
        "\n"
        "With --pivot it factors A P = QR, where P moves columns of large norm to the front, and writes P.npy too:\n"
        "A[:, P] = QR. --rank, --tol and --tol-frobenius stop it after fewer columns of Q and rows of R. A must fit\n"
        "the memory.\n"
        "\n"
        "With --compact-wy full, V.npy and T.npy take the place of Q.npy, and --keep-s adds S.npy:\n"
        "Q = I − V T Vᵀ = I − V Sᵀ, V m x k, T k x k, S m x k, k = min(m, n).");
    add_factor_files(command, *arguments);
    add_memory_argument(command, arguments->memory);
    add_file_route(command, *arguments);
    add_gpu_memory_argument(command, arguments->gpu_memory);
    add_number(command, "--gpus", "N", arguments->gpus, 1, 4096,
               "Factor on so many GPUs of this machine, connected by NCCL, which share the rows of a tall matrix");
    add_pivot_arguments(command, arguments->pivots, true);
    add_reading_arguments(command, arguments->reading);
    add_device_argument(command, arguments->common.device);
    add_trace_argument(command, arguments->common.trace);
    add_common_arguments(command, arguments->common);
    add_compact_wy_arguments(command, arguments->common.options);
    command.footer(
        "Example:  quoin factor A.npy --out factors --verify --memory 2GiB\n"
        "\n"
        "--json prints rows, cols, dtype, method, seconds, gflops and device.\n"
        "  --verify adds    residual and orthogonality.\n"
        "  --pivot adds     rank: the columns of Q with --rank or --tol, else the |r_jj| above rounding errors,\n"
        "                   and without these the dependent columns, which are beyond the rank.\n"
        "  A GPU adds       start_up_seconds (of CUDA), transfer_in_seconds (from the file to the GPU) and\n"
        "                   transfer_out_seconds (from the GPU to the files); seconds does not include them.\n"
        "  Blocks of rows through a GPU add reading_seconds, to_gpu_seconds (waiting for copies that reading does not\n"
        "                   hide), from_gpu_seconds and writing_seconds, which seconds includes, and gpu_seconds\n"
        "                   (work of the GPU during the reading).\n"
        "  From file to file: blocks, block (its rows or columns), first_step (above 0 if the run continued another),\n"
        "                   steps, bytes_read, bytes_written, and the read_seconds and write_seconds that they took.\n"
        "  Columns through a GPU add gpu_memory_bytes, bytes_to_gpu and bytes_from_gpu, and with --trace hidden (the\n"
        "                   share of the copies' time during which the GPU computed; not from file to file).\n"
        "\n"
        "seconds is the wall time of the factorization, including reading and writing if blocks are streamed. gflops\n"
        "counts 2mn² − 2n³/3 flops for R, and as many again for Q.");
    command.get_option("--pivot")->excludes("--gpus")->excludes("--second-pass")->excludes("--restart");
    command.get_option("--gpus")
        ->excludes("--memory")
        ->excludes("--gpu-memory")
        ->excludes("--second-pass")
        ->excludes("--restart")
        ->excludes("--compact-wy")
        ->excludes("--trace");
    command.callback([arguments] {
        const MatrixFile file = open_matrix(arguments->input, arguments->reading, arguments->memory);
        if (arguments->gpus > 0) return factor_on_gpus(*arguments, file);
        with_dtype(file.dtype(), [&]<class T>(T) {
            on_device(
                arguments->common, matrix_in_words(file),
                [&](const auto& ctx) {
                    // a larger A stays in the host's memory
                    return std::min(min_bytes<T>(ctx, file.rows(), file.cols(), route_options(*arguments, file)),
                                    device_memory_cap(ctx, arguments->memory_on_gpu()));
                },
                [&](auto& ctx, DeviceInUse& device) { run_factor<T>(ctx, device, *arguments, file); });
        });
    });
}

}  // namespace quoin::cli
