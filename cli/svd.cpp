#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "flop_counts.hpp"
#include "input_matrix.hpp"
#include "json_line.hpp"
#include "naming_file.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "routes.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"
#include "streams.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

struct SvdArguments {
    CommonArguments common;
    std::string input, out;
    bool values_only = false;
    Index memory = 0;
    MatrixFileOptions reading;
};

/// Returns the options of the route, without its caps.
RouteOptions route_options(const SvdArguments& arguments, const MatrixFile& file) {
    return {.options = arguments.common.options,
            .work = arguments.values_only ? Work::SingularValues : Work::SVD,
            .reader_bytes = reader_bytes(file)};
}

template <class T, class D>
void run_svd(Context<D>& ctx, DeviceInUse& device, const SvdArguments& arguments, const MatrixFile& file) {
    constexpr bool transfers = !std::is_same_v<D, Host>;
    const Index m = file.rows(), n = file.cols(), k = std::min(m, n);
    const bool vectors = !arguments.values_only;
    const Options options = arguments.common.options;
    RouteOptions within = route_options(arguments, file);
    if (!transfers) within.memory = memory_cap(arguments.memory);
    const RoutePlan route = within_cap(plan_route<T>(ctx, m, n, within), file.path(), {m, n}, scalar_kind<T>);
    const auto* stream = std::get_if<StreamPlan>(&route.by);

    OutputDirectory directory(arguments.out, {file_of_matrix(arguments.input)});
    const std::string s_path = directory.file("s.npy");
    const std::string U_path = vectors ? directory.file("U.npy") : "",
                      Vt_path = vectors ? directory.file("Vt.npy") : "";
    directory.refuse_leftovers({"s.npy", "U.npy", "Vt.npy"});
    std::optional<NpyRowWriter<T>> U_writer, Vt_writer;
    if (vectors) {
        U_writer.emplace(U_path, m, k);
        Vt_writer.emplace(Vt_path, k, n);
    }

    load_kernels<T>(ctx, m, n, device, [&](MatrixView<const T, D> small) { svd<T, D>(ctx, small, vectors, options); });
    Stopwatch watch;
    double reading_seconds = 0;
    const SVD<T, D> f = [&] {
        if constexpr (!transfers) {
            // A and R have the same singular values
            if (stream)
                return svd<T, Host>(ctx, stream_r<T>(ctx, file, stream->blocks, "decomposing").r().view(),
                                    /*vectors=*/false);
        }
        const Matrix<T, D> A = read_matrix<T>(ctx, file);
        reading_seconds = watch.seconds();
        ctx.reset_progress();
        // the small SVD and the product with its vectors come on top of the factorization
        const double flops = std::get<Plan>(route.by).flops + svd_flops(m, n, vectors) - factor_flops(m, n);
        const ProgressBar bar("decomposing", [&] { return ctx.flops_done() / flops; });
        return naming_file(file.path(), 0, [&] { return svd<T, D>(ctx, A.view(), vectors, options); });
    }();
    wait(ctx);
    const double seconds = watch.seconds() - reading_seconds;

    watch = {};
    if (vectors) {
        write_matrix<T>(ctx, *U_writer, "U.npy", f.U.view());
        write_matrix<T>(ctx, *Vt_writer, "Vt.npy", f.Vt.view());
    }
    const double writing_seconds = watch.seconds();
    throw_if_interrupted();
    write_npy(s_path, f.s);
    if (vectors) {
        U_writer->commit();
        Vt_writer->commit();
    }
    directory.keep();

    const char* method = stream ? "streaming-tsqr" : to_string(f.report.method);
    const double gflops = 1e-9 * svd_flops(m, n, vectors) / seconds;
    if (arguments.common.json) {
        JsonLine line;
        line.add("rows", m).add("cols", n).add("dtype", to_string(file.dtype())).add("method", method);
        line.add("seconds", seconds).add("gflops", gflops);
        add_device(line, device, reading_seconds, writing_seconds);
        if (k > 0) line.add("largest", double{f.s.front()}).add("smallest", double{f.s.back()});
        line.print();
        return;
    }
    fmt::print("{}: {} x {} {}\n", file.path(), m, n, to_string(file.dtype()));
    fmt::print("method         {}\n", method);
    if (stream) print_blocks(*stream);
    print_device(arguments.common, device, reading_seconds, writing_seconds);
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s\n", seconds, gflops);
    if (k > 0) fmt::print("values         {:.6e} to {:.6e}\n", f.s.front(), f.s.back());
    fmt::print("wrote          {}{}\n", s_path, vectors ? ", " + U_path + ", " + Vt_path : "");
}

}  // namespace

void add_svd(CLI::App& program) {
    auto arguments = std::make_shared<SvdArguments>();
    CLI::App& command = *program.add_subcommand(
        "svd",
        "Thin singular value decomposition A = U diag(s) Vᵀ, through R.\n"
        "\n"
        "A is m x n, tall and thin or short and wide, k = min(m, n). U.npy is m x k, s.npy holds k values, "
        "descending,\n"
        "and Vt.npy is k x n. With --values-only a tall matrix larger than --memory is streamed in one pass over its\n"
        "rows. quoin never replaces the input. With --values-only it refuses a folder that holds U.npy or Vt.npy of\n"
        "another run.");
    command.add_option("A", arguments->input, fmt::format("Matrix: {}", matrix_formats))->required();
    command.add_option("--out", arguments->out, "Folder for s.npy, U.npy and Vt.npy, created if missing")
        ->required()
        ->type_name("DIR");
    command.add_flag("--values-only", arguments->values_only, "Write s.npy alone; several times faster");
    add_memory_argument(command, arguments->memory);
    add_reading_arguments(command, arguments->reading);
    add_device_argument(command, arguments->common.device);
    add_trace_argument(command, arguments->common.trace);
    add_common_arguments(command, arguments->common);
    command.footer(
        "Example:  quoin svd A.npy --out decomposition\n\n"
        "Units: seconds of wall time; 10^9 flop/s by the standard count 6mn² + 20n³ (values alone: 2mn² + 2n³).\n"
        "--json prints rows, cols, dtype, method, seconds, gflops, device and the largest and smallest value on one\n"
        "line; on a GPU also start_up_seconds, transfer_in_seconds and transfer_out_seconds, as `quoin factor --help`\n"
        "has them.");
    command.callback([arguments] {
        const MatrixFile file = open_matrix(arguments->input, arguments->reading, arguments->memory);
        with_dtype(file.dtype(), [&]<class T>(T) {
            on_device(
                arguments->common, matrix_in_words(file),
                [&](const auto& ctx) {
                    return min_bytes<T>(ctx, file.rows(), file.cols(), route_options(*arguments, file));
                },
                [&](auto& ctx, DeviceInUse& device) { run_svd<T>(ctx, device, *arguments, file); });
        });
    });
}

}  // namespace quoin::cli
