#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "add_value.hpp"
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
    double tolerance = -1;
    Index max_rank = 0, memory = 0;
    MatrixFileOptions reading;
};

/// Returns the options of the route, without its caps.
RouteOptions route_options(const SvdArguments& arguments, const MatrixFile& file) {
    Options options = arguments.common.options;
    if (arguments.max_rank > 0) options.pivoting = Pivoting{.max_rank = arguments.max_rank};
    return {.options = options,
            .work = arguments.values_only ? Work::SingularValues : Work::SVD,
            .reader_bytes = reader_bytes(file)};
}

template <class T, class D>
void run_svd(Context<D>& ctx, DeviceInUse& device, const SvdArguments& arguments, const MatrixFile& file) {
    constexpr bool transfers = !std::is_same_v<D, Host>;
    const Index m = file.rows(), n = file.cols(), all = std::min(m, n),
                k = arguments.max_rank > 0 ? std::min(arguments.max_rank, all) : all;
    const bool vectors = !arguments.values_only;
    RouteOptions within = route_options(arguments, file);
    const Options options = within.options;
    if (!transfers) within.memory = memory_cap(arguments.memory);
    const RoutePlan route = within_cap(plan_route<T>(ctx, m, n, within), file.path(), {m, n}, scalar_kind<T>);
    const auto* stream = std::get_if<StreamPlan>(&route.by);

    std::optional<OutputDirectory> directory;
    if (!arguments.out.empty()) directory.emplace(arguments.out, std::vector{file_of_matrix(arguments.input)});
    const auto path_of = [&](bool wanted, const char* name) {
        return directory && wanted ? directory->file(name) : "";
    };
    const std::string s_path = path_of(true, "s.npy");
    const std::string U_path = path_of(vectors, "U.npy"), Vt_path = path_of(vectors, "Vt.npy");
    if (directory) directory->refuse_leftovers({"s.npy", "U.npy", "Vt.npy"});
    std::optional<NpyRowWriter<T>> U_writer, Vt_writer;
    if (vectors) {
        U_writer.emplace(U_path, m, k);
        Vt_writer.emplace(Vt_path, k, n);
    }

    load_kernels<T>(ctx, m, n, device, [&](MatrixView<const T, D> small) {
        svd<T, D>(ctx, small, vectors, options_for<T>(small, options));
    });
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
        const double flops = flops_of_svd<T>(ctx, m, n, vectors, options);
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
    if (directory) write_npy(s_path, f.s);
    if (vectors) {
        U_writer->commit();
        Vt_writer->commit();
    }
    if (directory) directory->keep();
    // σ_i <= τσ₁ counts as zero
    const double largest = k > 0 ? static_cast<double>(f.s.front()) : 0,
                 smallest = k > 0 ? static_cast<double>(f.s.back()) : 0,
                 tolerance = arguments.tolerance >= 0 ? arguments.tolerance
                                                      : static_cast<double>(std::max(m, n)) * 2 * Scalar<T>::u;
    const Index rank = std::count_if(f.s.begin(), f.s.end(), [&](T x) { return x > tolerance * largest; });

    const char* method = stream                            ? "streaming-tsqr"
                         : f.report.method == Method::Auto ? "bidiagonalization"
                                                           : to_string(f.report.method);
    const double flops = k < all ? std::get<Plan>(route.by).flops : svd_flops(m, n, vectors),
                 gflops = 1e-9 * flops / seconds;
    if (arguments.common.json) {
        JsonLine line;
        line.add("rows", m).add("cols", n).add("dtype", to_string(file.dtype())).add("method", method);
        line.add("seconds", seconds).add("gflops", gflops);
        add_device(line, device, reading_seconds, writing_seconds);
        if (k > 0) line.add("largest", largest).add("smallest", smallest);
        line.add("rank", rank).add("tolerance", tolerance);
        line.print();
        return;
    }
    fmt::print("{}: {} x {} {}\n", file.path(), m, n, to_string(file.dtype()));
    fmt::print("method         {}\n", method);
    if (stream) print_blocks(*stream);
    print_device(arguments.common, device, reading_seconds, writing_seconds);
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s\n", seconds, gflops);
    if (k > 0) {
        fmt::print("values         {:.6e} to {:.6e}{}\n", largest, smallest,
                   k < all ? fmt::format(", the {} largest of {}", k, all) : "");
    }
    fmt::print("rank           {}{} of {}: ", rank == k && k < all ? "at least " : "", rank, all);
    if (rank > 0)
        fmt::print("σ_{} = {:.3e} is above {:.2g} σ₁ = {:.3e}", rank, f.s[rank - 1], tolerance, tolerance * largest);
    if (rank < k) fmt::print("{}σ_{} = {:.3e} is not", rank > 0 ? ", " : "", rank + 1, f.s[rank]);
    fmt::print("\n");
    if (directory) fmt::print("wrote          {}{}\n", s_path, vectors ? ", " + U_path + ", " + Vt_path : "");
}

}  // namespace

void add_svd(CLI::App& program) {
    auto arguments = std::make_shared<SvdArguments>();
    CLI::App& command = *program.add_subcommand(
        "svd",
        "Thin singular value decomposition A = U diag(s) Vᵀ, through R.\n"
        "\n"
        "A is m x n, tall and thin or short and wide, k = min(m, n). U.npy is m x k, s.npy holds k values,\n"
        "descending, and Vt.npy is k x n. With --values-only a tall matrix larger than --memory is streamed in one\n"
        "pass over its rows. quoin never replaces the input. With --values-only it refuses a folder that holds U.npy\n"
        "or Vt.npy of another run.");
    command.add_option("A", arguments->input, fmt::format("Matrix: {}", matrix_formats))->required();
    add_value(command, "--out", "DIR", arguments->out,
              "Folder for s.npy, U.npy and Vt.npy, created if missing. Needed unless --values-only prints the rank");
    add_number(command, "--rank", "K", arguments->max_rank, 1, std::numeric_limits<Index>::max(),
               "Only the K largest values and their vectors, from a QR with column pivoting that stops soon after K\n"
               "columns. A must fit into memory");
    command.add_flag("--values-only", arguments->values_only, "Write s.npy alone; several times faster");
    add_number(command, "--tol", "X", arguments->tolerance, 0.0, 1.0,
               "Count singular values of at most X times the largest as zero in the rank (default: max(m, n) 2u, "
               "as\nNumPy; u = 6e-8 in f32 and 1.1e-16 in f64)");
    add_memory_argument(command, arguments->memory);
    add_reading_arguments(command, arguments->reading);
    add_device_argument(command, arguments->common.device);
    add_trace_argument(command, arguments->common.trace);
    add_common_arguments(command, arguments->common);
    command.footer(
        "Example:  quoin svd A.npy --out decomposition\n"
        "          quoin svd A.npy --rank 100 --out principal    an approximation of rank 100\n"
        "          quoin svd A.npy --values-only            the rank, and the values that decide it. `quoin factor "
        "A.npy\n"
        "                                                   --pivot` names the columns that depend on other ones\n\n"
        "Units: seconds of wall time; 10^9 flop/s by the standard count 6mn² + 20n³ (values alone: 2mn² + 2n³; with\n"
        "--rank the flops of the factorization).\n"
        "--json prints rows, cols, dtype, method, seconds, gflops, device, the largest and smallest value, rank and\n"
        "tolerance on one line; on a GPU also start_up_seconds, transfer_in_seconds and transfer_out_seconds, as\n"
        "`quoin factor --help` has them.");
    command.callback([arguments] {
        if (arguments->out.empty() && !arguments->values_only) throw CLI::RequiredError("--out");
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
