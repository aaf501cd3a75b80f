#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "byte_size.hpp"
#include "factor_by_ranks.hpp"
#include "factor_files.hpp"
#include "file_accuracy.hpp"
#include "file_route.hpp"
#include "flop_counts.hpp"
#include "input_matrix.hpp"
#include "json_line.hpp"
#include "memory_cap.hpp"
#include "naming_file.hpp"
#include "number_between.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "quoin/file_qr.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"
#include "streamed_accuracy.hpp"
#include "streaming_layout.hpp"
#include "subcommands.hpp"
#ifdef QUOIN_HAVE_NCCL
#include "quoin/nccl.hpp"
#endif

namespace quoin::cli {

namespace {

struct FactorArguments : FactorFiles {
    CommonArguments common;
    Index memory = 0;
    SecondPass second_pass = SecondPass::Auto;
    bool restart = false;
    Index gpu_memory = 0;
    int gpus = 0;
    MatrixFileOptions reading;

    /// The cap on what is taken there, as it was given, or 0; and that on what stays in the host's memory meanwhile.
    Index memory_on_gpu() const { return gpu_memory > 0 ? gpu_memory : memory; }
    Index memory_beside_gpu() const { return gpu_memory > 0 ? memory : 0; }
};

/// R.npy, and Q.npy, or V.npy, T.npy and S.npy: their space on disk is taken before any computation, and they appear together
/// at the end.
template <class T>
struct Outputs {
    Outputs(OutputDirectory& directory, const FactorArguments& arguments, Index m, Index n)
        : r(open(directory, "R.npy", std::min(m, n), n)) {
        const Index k = std::min(m, n);
        const Options& options = arguments.common.options;
        if (options.q.full_t) {
            v.emplace(open(directory, "V.npy", m, k));
            t.emplace(open(directory, "T.npy", k, k));
            if (options.q.full_t->keep_s) s.emplace(open(directory, "S.npy", m, k));
        } else if (!arguments.r_only) {
            q.emplace(open(directory, "Q.npy", m, k));
        }
    }
    void commit() {
        throw_if_interrupted();
        for (auto* file : {&q, &v, &t, &s}) {
            if (*file) (*file)->commit();
        }
        r.commit();
    }
    std::string names;  ///< the files' paths, separated by commas
    NpyRowWriter<T> r;
    std::optional<NpyRowWriter<T>> q, v, t, s;

private:
    NpyRowWriter<T> open(OutputDirectory& directory, const char* name, Index rows, Index cols) {
        const std::string path = directory.file(name);
        names += (names.empty() ? "" : ", ") + path;
        return NpyRowWriter<T>(path, rows, cols);
    }
};

struct Outcome {
    std::string method;
    std::string remark = {};  ///< on the choice of the method
    double seconds = 0;
    double transfer_in_seconds = -1;   ///< from the file to the GPU
    double transfer_out_seconds = -1;  ///< from the GPU to the files
    double orthogonality = -1;
    double residual = -1;
    std::optional<StreamTimes> stream = {};           ///< through a GPU
    std::optional<OutOfCoreReport> out_of_core = {};  ///< where A stayed in the host's memory, and a GPU computed
    std::optional<FilePlan> file_plan = {};           ///< on the host where it went from file to file
    FileReport file_report = {};
};

template <class T, class D>
Outcome factor_in_memory(Context<D>& ctx, const MatrixFile& file, const Plan& plan, bool verify, Outputs<T>& outputs) {
    constexpr bool transfers = !std::is_same_v<D, Host>;
    Outcome outcome;
    Stopwatch watch;
    Matrix<T, D> A = read_matrix<T>(ctx, file);
    if (transfers) outcome.transfer_in_seconds = watch.seconds();

    watch = {};
    QR<T, D> f = [&] {
        ctx.reset_progress();
        const ProgressBar bar("factoring", [&] { return ctx.flops_done() / plan.flops; });
        return naming_file(file.path(), 0, [&] { return qr(ctx, std::move(A), plan); });
    }();
    wait(ctx);
    outcome.seconds = transfers ? watch.seconds() : f.report().seconds;
    outcome.method = to_string(f.report().method);
    if (f.report().fell_back)
        outcome.remark = fmt::format(" ({} could not certify its answer)", to_string(plan.method));
    if (const Index dependent = f.report().dependent_columns; dependent > 0)
        outcome.remark = fmt::format(" ({} on others: 0 on R's diagonal)",
                                     dependent == 1 ? "1 column depends" : fmt::format("{} columns depend", dependent));

    watch = {};
    const Matrix<T, D> R = f.r(ctx);
    write_matrix<T>(ctx, outputs.r, "R.npy", R.view());
    if (outputs.v) write_matrix<T>(ctx, *outputs.v, "V.npy", f.v(ctx).view());
    if (outputs.t) write_matrix<T>(ctx, *outputs.t, "T.npy", f.t(ctx).view());
    if (outputs.s) write_matrix<T>(ctx, *outputs.s, "S.npy", f.s(ctx).view());
    Matrix<T, D> Q;
    if (plan.q == QForm::Explicit || (verify && plan.q != QForm::None)) Q = std::move(f).take_q(ctx);
    if (outputs.q) write_matrix<T>(ctx, *outputs.q, "Q.npy", Q.view());
    if (transfers) outcome.transfer_out_seconds = watch.seconds();
    if (verify) {
        const Matrix<T, D> original = read_matrix<T>(ctx, file);
        outcome.orthogonality = orthogonality<T>(ctx, Q.view());
        outcome.residual = residual<T>(ctx, original.view(), Q.view(), R.view());
    }
    return outcome;
}

FileOptions file_options(const FactorArguments& arguments, double cap) {
    FileOptions options;
    options.memory = cap;
    options.want_q = !arguments.r_only || arguments.verify;
    options.second_pass = arguments.second_pass;
    options.restart = arguments.restart;
    return options;
}

/// From file to file, by way of a journal.
template <class T, class D>
Outcome factor_file(Context<D>& ctx, const MatrixFile& file, const FactorArguments& arguments,
                    const FileOptions& options) {
    std::optional<FileAccuracyPlan> accuracy;
    if (arguments.verify) accuracy = plan_file_accuracy<T>(file.path(), file.rows(), file.cols(), options.memory);
    FileQR<T, D> f(ctx, file.path(), arguments.out, options);
    Outcome outcome;
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

#ifdef QUOIN_HAVE_CUDA
/// By blocks of rows through a GPU; the accuracy is measured on the host.
template <class T>
Outcome factor_streaming(Context<Cuda>& ctx, const MatrixFile& file, RowBlocks blocks, const Plan& plan, bool verify,
                         Outputs<T>& outputs) {
    Outcome outcome{"streaming-tsqr"};
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
        if (plan.q == QForm::None) {
            const StreamingR<T, Cuda> stream = stream_r<T>(ctx, file, blocks, "factoring");
            R = copy_to_host<T>(ctx, stream.r(ctx).view());
            return stream.times();
        }
        StreamingQR<T, Cuda> stream(ctx, file.cols());
        for_each_block("pass 1 of 2: R", blocks, [&](Range rows) {
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
    write_matrix<T>(host, outputs.r, "R.npy", R.view());
    outcome.transfer_in_seconds = times.reading + times.to_device;
    outcome.transfer_out_seconds = times.writing + times.from_device;
    if (accuracy) {
        outcome.orthogonality = accuracy->orthogonality();
        outcome.residual = accuracy->residual();
    }
    return outcome;
}
#endif

/// What is computed, on either device.
Options factor_options(const FactorArguments& arguments) {
    // Accuracy cannot be measured without Q.
    const bool form_q = !arguments.r_only || arguments.verify;
    Options options = arguments.common.options;
    const bool full = options.q.full_t.has_value();
    if (full && arguments.r_only)
        throw CLI::ValidationError("--r-only", "excludes --compact-wy full, which writes V and T");
    if (!full) options.q = form_q ? QForm::Explicit : QForm::None;
    return options;
}

/// Whether the matrix is factored from file to file, because it does not fit the memory of the host. Throws OutOfMemory where that
/// cannot be either.
template <class T>
bool from_file_to_file(Context<Host>& ctx, const FactorArguments& arguments, const MatrixFile& file, const Plan& plan,
                       double cap) {
    const double in_memory = factor_bytes(plan, arguments.verify) + reader_bytes(file);
    if (in_memory <= cap) return false;
    const Method method = arguments.common.options.method;
    const bool by_reflectors = method == Method::Auto || method == Method::TSQR || method == Method::BlockedHouseholder;
    if (file.streams() && by_reflectors && !plan.full_t && file.rows() > 0 && file.cols() > 0) {
        const auto planned = [&](const FileOptions& o) { return plan_file_qr<T>(ctx, file.rows(), file.cols(), o); };
        file_plan_within<T>(planned, file.path(), {file.rows(), file.cols()}, file_options(arguments, cap), in_memory);
        return true;
    }
    refuse_memory_cap(file.path(), cap, in_memory,
                      fmt::format("for a {} x {} {} matrix", file.rows(), file.cols(), to_string(file.dtype())));
}

void add_file_route(JsonLine& line, const Outcome& outcome) {
    const FilePlan& plan = *outcome.file_plan;
    const FileReport& report = outcome.file_report;
    line.add("blocks", plan.blocks).add("block", plan.block);
    line.add("first_step", report.first_step).add("steps", plan.steps());
    line.add("bytes_read", report.bytes_read).add("bytes_written", report.bytes_written);
    line.add("read_seconds", report.read_seconds).add("write_seconds", report.write_seconds);
    if (plan.device_memory_bytes == 0) return;
    line.add("gpu_memory_bytes", report.device_memory_bytes);
    line.add("bytes_to_gpu", report.bytes_to_device).add("bytes_from_gpu", report.bytes_from_device);
}

void print_file_route(const Outcome& outcome, double cap) {
    const FilePlan& plan = *outcome.file_plan;
    const FileReport& report = outcome.file_report;
    const std::string choices = to_string(plan);
    fmt::print("streamed       {}, within {}\n", choices.substr(0, choices.find('\n')), format_byte_size(cap));
    fmt::print("files          {} read", format_byte_size(report.bytes_read));
    if (report.read_seconds > 0) fmt::print(" at {:.2f} GB/s", 1e-9 * report.bytes_read / report.read_seconds);
    fmt::print(", {} written", format_byte_size(report.bytes_written));
    if (report.write_seconds > 0) fmt::print(" at {:.2f} GB/s", 1e-9 * report.bytes_written / report.write_seconds);
    fmt::print("\n");
    if (plan.device_memory_bytes == 0) return;
    fmt::print("moved          {} to the GPU, {} from it\nGPU's memory   {} taken\n",
               format_byte_size(report.bytes_to_device), format_byte_size(report.bytes_from_device),
               format_byte_size(report.device_memory_bytes));
}

#ifdef QUOIN_HAVE_CUDA
/// The same choices for a matrix that does not fit it.
OutOfCoreOptions out_of_core_options(const FactorArguments& arguments, double cap) {
    const Options& given = arguments.common.options;
    const bool by_householder = given.method == Method::Auto || given.method == Method::BlockedHouseholder;
    if (!by_householder && given.method != Method::ClassicalGramSchmidt)
        throw CLI::ValidationError("--method",
                                   fmt::format("{} needs the whole matrix in the GPU's memory, which it does "
                                               "not fit: take householder or cgs",
                                               to_string(given.method)));
    if (given.q.full_t)
        throw CLI::ValidationError("--compact-wy",
                                   "full needs the whole matrix in the GPU's memory, which it does not fit");
    OutOfCoreOptions options;
    options.method = by_householder ? OutOfCoreMethod::Householder : OutOfCoreMethod::Recursive;
    options.arithmetic = given.arithmetic;
    options.reorthogonalize = given.method.reorthogonalization() != Reorthogonalization::Off;
    options.check_finite = given.check_finite;
    options.memory_bytes = cap;
    return options;
}

/// What a GPU's memory is asked for, the libraries' and kernels' included.
double asked_of_gpu(const FactorArguments& arguments, double gpu_cap) {
    return arguments.memory_on_gpu() > 0 ? gpu_cap : 0.9 * gpu_cap;
}

/// What `plan()` says; where it is refused a GPU's memory, the file and the options are named.
template <class F>
auto planned_within_gpu(const std::string& path, F plan) {
    try {
        return plan();
    } catch (const OutOfMemory& refusal) {
        throw OutOfMemory(fmt::format("{}: --gpu-memory, or --memory alone: {}", path, refusal.what()));
    }
}

/// A, and Q in its place, in the host's memory, and R; blocks of them on the GPU.
template <class T>
Outcome factor_beyond_gpu(Context<Cuda>& ctx, const MatrixFile& file, const FactorArguments& arguments, double gpu_cap,
                          Outputs<T>& outputs) {
    const Index m = file.rows(), n = file.cols(), k = std::min(m, n);
    const OutOfCoreOptions options = out_of_core_options(arguments, asked_of_gpu(arguments, gpu_cap));
    const OutOfCorePlan plan =
        planned_within_gpu(file.path(), [&] { return plan_out_of_core<T, Cuda>(m, n, options); });
    const double bytes = bytes_beside_gpu<T>({file.rows(), file.cols()}, arguments.verify),
                 cap = memory_cap(arguments.memory_beside_gpu());
    if (bytes > cap) refuse_memory_cap(file.path(), cap, bytes, "for A and R, whose blocks a GPU is to factor");
    Context<Host> host = make_context(arguments.common);
    Outcome outcome;
    Stopwatch watch;
    Matrix<T> A = read_matrix<T>(host, file), R(k, n);
    outcome.transfer_in_seconds = watch.seconds();
    std::fill_n(R.data(), k * n, T(0));
    ctx.reset_progress();
    {
        const ProgressBar bar("factoring", [&] { return ctx.flops_done() / plan.flops; });
        naming_file(file.path(), 0,
                    [&] { outcome.out_of_core = qr_out_of_core<T, Cuda>(ctx, A.view(), R.view(), options); });
    }
    outcome.seconds = outcome.out_of_core->seconds;
    outcome.method = plan.method == OutOfCoreMethod::Householder ? "householder" : "cgs";
    outcome.remark = fmt::format(" out of core: {} of the GPU's memory, {} columns at a time",
                                 format_byte_size(options.memory_bytes), plan.block);
    watch = {};
    const MatrixView<const T> Q = std::as_const(A).view().col_block({0, k});
    write_matrix<T>(host, outputs.r, "R.npy", std::as_const(R).view());
    if (outputs.q) write_matrix<T>(host, *outputs.q, "Q.npy", Q);
    outcome.transfer_out_seconds = watch.seconds();
    if (arguments.verify) {
        const Matrix<T> original = read_matrix<T>(host, file);
        outcome.orthogonality = orthogonality<T>(host, Q);
        outcome.residual = residual<T>(host, original.view(), Q, std::as_const(R).view());
    }
    return outcome;
}

/// Where A does not fit the host's memory either, how it goes from file to file, by way of both; nothing where it does, or no
/// way leads there.
template <class T>
std::optional<FileOptions> files_beside_gpu(const FactorArguments& arguments, const MatrixFile& file, double gpu_cap) {
    const double cap = memory_cap(arguments.memory_beside_gpu());
    if (bytes_beside_gpu<T>({file.rows(), file.cols()}, arguments.verify) <= cap || !file.streams())
        return std::nullopt;
    const OutOfCoreOptions beyond = out_of_core_options(arguments, asked_of_gpu(arguments, gpu_cap));
    if (beyond.method != OutOfCoreMethod::Householder) return std::nullopt;
    FileOptions options = file_options(arguments, cap);
    options.device_memory = beyond.memory_bytes;
    options.arithmetic = beyond.arithmetic;
    const auto planned = [&](const FileOptions& o) {
        return planned_within_gpu(file.path(), [&] { return plan_file_qr<T, Cuda>(file.rows(), file.cols(), o); });
    };
    file_plan_within<T>(planned, file.path(), {file.rows(), file.cols()}, options);
    return options;
}
#endif

/// What the factorization takes of a GPU's memory where it is streamed.
template <class T>
std::optional<StreamingMemory> streaming_on_gpu(const FactorArguments& arguments, const Plan& plan) {
    return gpu_streaming(plan.rows, plan.cols, 0, plan.q != QForm::None, sizeof(T), arguments.common.options);
}

template <class T, class D>
void run_factor(Context<D>& ctx, DeviceInUse& device, const FactorArguments& arguments, const MatrixFile& file) {
    const Index m = file.rows(), n = file.cols();
    const Plan plan = plan_qr<T>(ctx, m, n, factor_options(arguments));
    const bool form_q = plan.q != QForm::None;
    double cap = 0;
    std::optional<FileOptions> by_file;
    std::optional<RowBlocks> blocks;       // through a GPU
    [[maybe_unused]] bool beyond = false;  // a GPU computes, and A stays in the host's memory
    if constexpr (std::is_same_v<D, Host>) {
        cap = memory_cap(arguments.memory);
        if (from_file_to_file<T>(ctx, arguments, file, plan, cap)) by_file = file_options(arguments, cap);
    } else {
        cap = gpu_memory_cap(ctx, arguments.memory_on_gpu());
        const double in_memory = factor_bytes(plan, arguments.verify);
        const auto streaming = streaming_on_gpu<T>(arguments, plan);
        beyond = least_bytes(file, in_memory, streaming) > cap;
        if (beyond) by_file = files_beside_gpu<T>(arguments, file, cap);
        if (!beyond) blocks = choose_blocks(file, cap, in_memory, streaming, enough_gpu_rows(n, sizeof(T)));
    }

    OutputDirectory directory(arguments.out, {file_of_matrix(arguments.input)});
    Outcome outcome;
    std::string written;
    if (by_file) {
        written = directory.file("R.npy") + (arguments.r_only ? "" : ", " + directory.file("Q.npy"));
        directory.refuse_leftovers(every_output);
        outcome = factor_file<T, D>(ctx, file, arguments, *by_file);
    } else {
        Outputs<T> outputs(directory, arguments, m, n);
        directory.refuse_leftovers(every_output);
        load_kernels<T>(ctx, m, n, device, [&](MatrixView<const T, D> small) {
            if (!blocks) {
                qr<T, D>(ctx, small, factor_options(arguments));
            } else if (form_q) {
                StreamingQR<T, D> stream(ctx, small.cols);
                stream.append(ctx, small);
                stream.q_rows(ctx, small);
            } else {
                StreamingR<T, D>(ctx, small.cols).append(ctx, small);
            }
        });
        outcome = [&] {
            if constexpr (!std::is_same_v<D, Host>) {
                if (beyond) return factor_beyond_gpu<T>(ctx, file, arguments, cap, outputs);
                if (blocks) return factor_streaming<T>(ctx, file, *blocks, plan, arguments.verify, outputs);
            }
            return factor_in_memory<T>(ctx, file, plan, arguments.verify, outputs);
        }();
        outputs.commit();
        written = outputs.names;
    }
    directory.keep();

    const bool thin_q = plan.q == QForm::Explicit;
    const double gflops = 1e-9 * (thin_q ? thin_qr_flops(m, n) : factor_flops(m, n)) / outcome.seconds;
    if (arguments.common.json) {
        JsonLine line;
        line.add("rows", m).add("cols", n).add("dtype", to_string(file.dtype())).add("method", outcome.method);
        line.add("seconds", outcome.seconds).add("gflops", gflops);
        add_device(line, device, outcome.transfer_in_seconds, outcome.transfer_out_seconds);
        if (outcome.stream) add_stream_times(line, *outcome.stream);
        if (outcome.out_of_core) {
            line.add("gpu_memory_bytes", outcome.out_of_core->memory_bytes);
            line.add("bytes_to_gpu", outcome.out_of_core->bytes_in)
                .add("bytes_from_gpu", outcome.out_of_core->bytes_out);
            line.add_measured("hidden", outcome.out_of_core->hidden);
        }
        if (outcome.file_plan) add_file_route(line, outcome);
        if (arguments.verify)
            line.add_measured("residual", outcome.residual).add_measured("orthogonality", outcome.orthogonality);
        line.print();
        return;
    }
    fmt::print("{}: {} x {} {}\n", file.path(), m, n, to_string(file.dtype()));
    fmt::print("method         {}{}\n", outcome.method, outcome.remark);
    if (blocks) print_blocks(*blocks, cap);
    if (outcome.file_plan) print_file_route(outcome, by_file->memory);
    print_device(arguments.common, device, outcome.transfer_in_seconds, outcome.transfer_out_seconds);
    if (outcome.stream) print_stream_times(*outcome.stream);
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s\n", outcome.seconds, gflops);
    if (outcome.out_of_core) {
        const OutOfCoreReport& report = *outcome.out_of_core;
        fmt::print(
            "moved          {} to the GPU, {} from it{}\n", format_byte_size(report.bytes_in),
            format_byte_size(report.bytes_out),
            report.hidden < 0 ? "" : fmt::format(", {:.0f}% of the time beside computation", 100 * report.hidden));
        fmt::print("GPU's memory   {} taken\n", format_byte_size(report.memory_bytes));
    }
    if (arguments.verify) print_accuracy(outcome.residual, outcome.orthogonality);
    fmt::print("wrote          {}\n", written);
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
        "With --gpus several GPUs share the rows of a tall matrix: each reads its rows of the file, factors them with "
        "the\n"
        "others by cholesky-qr2 where it is certified, otherwise by tsqr, and writes its rows of Q.npy. They need "
        "memory\n"
        "for twice their rows.\n"
        "\n"
        "quoin never replaces the input. It refuses a folder that holds an output of a run with other options, if\n"
        "this run does not write that output.\n"
        "\n"
        "With --compact-wy full, V.npy and T.npy take the place of Q.npy, and --keep-s adds S.npy:\n"
        "Q = I − V T Vᵀ = I − V Sᵀ, V m x k, T k x k, S m x k, k = min(m, n).");
    add_factor_files(command, *arguments);
    add_memory_argument(command, arguments->memory);
    add_choice(
        command, "--second-pass", arguments->second_pass,
        {SecondPass::Auto, SecondPass::Stored, SecondPass::Recomputed},
        "How a matrix larger than --memory gets the reflectors for Q: stored (on the disk until then, as large as\n"
        "A), recomputed (2mn² flops more) or auto (default: auto)");
    command.add_flag("--restart", arguments->restart,
                     "Start again: delete the journal that a stopped run left in --out, with all that it had finished");
    add_gpu_memory_argument(command, arguments->gpu_memory);
    command
        .add_option("--gpus", arguments->gpus,
                    "Factor on so many GPUs of this machine, connected by NCCL, which share the rows of a tall matrix")
        ->check(number_between(1, 4096))
        ->type_name("N");
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
        "  A GPU adds       start_up_seconds (of CUDA), transfer_in_seconds (from the file to the GPU) and\n"
        "                   transfer_out_seconds (from the GPU to the files); seconds does not include them.\n"
        "  Blocks of rows through a GPU add reading_seconds, to_gpu_seconds (waiting for copies that reading does not\n"
        "                   hide), from_gpu_seconds and writing_seconds, which seconds includes, and gpu_seconds (work "
        "of\n"
        "                   the GPU during the reading).\n"
        "  From file to file: blocks, block (its rows or columns), first_step (above 0 if the run continued another),\n"
        "                   steps, bytes_read, bytes_written, and the read_seconds and write_seconds that they took.\n"
        "  Columns through a GPU add gpu_memory_bytes, bytes_to_gpu and bytes_from_gpu, and with --trace hidden (the\n"
        "                   share of the copies' time during which the GPU computed; not from file to file).\n"
        "\n"
        "seconds is the wall time of the factorization, including reading and writing if blocks are streamed. gflops\n"
        "counts 2mn² − 2n³/3 flops for R, and as many again for Q.");
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
                    const Plan plan = plan_qr<T>(ctx, file.rows(), file.cols(), factor_options(*arguments));
                    const double least =
                        least_bytes(file, factor_bytes(plan, arguments->verify), streaming_on_gpu<T>(*arguments, plan));
#ifdef QUOIN_HAVE_CUDA
                    // beyond the cap A stays in the host's memory
                    if constexpr (std::is_same_v<std::decay_t<decltype(ctx)>, Context<Cuda>>)
                        return std::min(least, gpu_memory_cap(ctx, arguments->memory_on_gpu()));
#endif
                    return least;
                },
                [&](auto& ctx, DeviceInUse& device) { run_factor<T>(ctx, device, *arguments, file); });
        });
    });
}

}  // namespace quoin::cli
