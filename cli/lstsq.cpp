#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <numeric>

#include "add_value.hpp"
#include "arguments.hpp"
#include "flop_counts.hpp"
#include "input_matrix.hpp"
#include "json_line.hpp"
#include "lstsq_statistics.hpp"
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

struct LstsqArguments {
    CommonArguments common;
    std::string input, right_hand_sides, target, out, weights;
    bool with_statistics = false;
    LeastSquaresOptions solver;
    RegressionOptions regression;
    Index memory = 0;
    MatrixFileOptions reading;
};

/// Returns the column of the matrix in `file` that --target names, by a name of the header or a number from 1.
Index target_column(const MatrixFile& file, const std::string& target) {
    const std::vector<std::string> names = file.column_names();
    const auto name = std::find(names.begin(), names.end(), target);
    if (name != names.end()) return name - names.begin();
    Index number = 0;
    const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
    if (error != std::errc() || *end != 0 || number < 1 || number > file.cols())
        throw InvalidArgument(fmt::format("--target: {} has no column '{}': write a number from 1 to {}{}", file.path(),
                                          target, file.cols(),
                                          names.empty() ? "" : fmt::format(", or one of {}", fmt::join(names, ", "))));
    return number - 1;
}

/// Calls `f()`, which works on rows A and b of the two files that begin at `first_row`; NaN or Inf is laid to the file
/// that holds it.
template <class T, class F>
decltype(auto) naming_files(const MatrixFile& A_file, const MatrixFile& b_file, Index first_row, F&& f) {
    try {
        return f();
    } catch (const NonFiniteEntry& e) {
        Matrix<T> b(1, b_file.cols());
        b_file.read_rows<T>({first_row + e.row, first_row + e.row + 1}, b.view());
        const bool in_b = e.col < b.cols() && !std::isfinite(b(0, e.col));
        const MatrixFile& file = in_b ? b_file : A_file;
        throw in_file({e.row, file.column_in_file(e.col), ""}, file.path(), first_row);
    }
}

/// Streams all rows √wᵢ [1 aᵢ bᵢ] of the two files.
template <class T, class D>
StreamingR<T, D> stream_rows(Context<D>& ctx, const MatrixFile& A_file, const MatrixFile& b_file, RowBlocks blocks,
                             const RegressionOptions& options) {
    StreamingR<T, D> stream(ctx, A_file.cols() + options.intercept, b_file.cols());
    for_each_block("solving", blocks, [&](Range rows) {
        naming_files<T>(A_file, b_file, rows.begin,
                        [&] { append_weighted_rows<T>(ctx, stream, A_file, b_file, rows, options); });
    });
    return stream;
}

/// Returns the options of the route, without its caps.
RouteOptions route_options(const LstsqArguments& arguments, const MatrixFile& A_file, const MatrixFile& b_file) {
    RouteOptions options{.options = arguments.common.options, .work = Work::LeastSquares};
    options.right_hand_sides = b_file.cols();
    options.reader_bytes = reader_bytes(A_file) + reader_bytes(b_file);
    return options;
}
/// Returns the route for n unknowns within the caps.
template <class T, class D>
RoutePlan route_of(Context<D>& ctx, const LstsqArguments& arguments, const MatrixFile& A_file, const MatrixFile& b_file,
                   Index n) {
    RouteOptions within = route_options(arguments, A_file, b_file);
    within.memory = device_memory_cap(ctx, arguments.memory);
    const Shape shape{A_file.rows(), n};
    return within_cap(plan_route<T>(ctx, shape.rows, n, within), A_file.path(), shape, scalar_kind<T>);
}

/// Returns the part of the JSON that does not depend on the statistics.
JsonLine line_of(const MatrixFile& A_file, Index right_hand_sides, ScalarKind dtype, const char* method, double seconds,
                 double gflops) {
    JsonLine line;
    line.add("rows", A_file.rows()).add("cols", A_file.cols()).add("right_hand_sides", right_hand_sides);
    line.add("dtype", to_string(dtype)).add("method", method).add("seconds", seconds).add("gflops", gflops);
    return line;
}
void add_rank(JsonLine& line, double condition, Index rank, const std::vector<Index>& dependent) {
    line.add("condition", condition).add("rank", rank);
    line.add("dependent", std::vector<double>(dependent.begin(), dependent.end()));
}

bool is_text(const std::string& path) { return path.ends_with(".txt") || path.ends_with(".csv"); }

/// A line for each row, its numbers separated by commas; the same numbers when they are read again.
template <class T>
std::string text_of(const Matrix<T>& X) {
    std::string text;
    for (Index i = 0; i < X.rows(); ++i) {
        for (Index j = 0; j < X.cols(); ++j) text += fmt::format("{}{}", j > 0 ? "," : "", X(i, j));
        text += '\n';
    }
    return text;
}

template <class T>
void write_solution(const std::string& path, const Matrix<T>& X) {
    if (is_text(path))
        write_text(path, text_of(X));
    else if (X.cols() == 1)
        write_npy(path, std::vector<T>(X.data(), X.data() + X.rows()));
    else
        write_npy<T>(path, X.view());
}

/// Streams all rows, by the blocks of the route or by blocks of a moderate size, and prints the statistics.
template <class T, class D>
void run_regression(Context<D>& ctx, DeviceInUse& device, const LstsqArguments& arguments, const MatrixFile& A_file,
                    const MatrixFile& b_file) {
    RegressionOptions options = arguments.regression;
    const Index m = A_file.rows(), n = A_file.cols() + options.intercept, p = b_file.cols();
    const RoutePlan route = route_of<T>(ctx, arguments, A_file, b_file, n);
    const auto* stream_plan = std::get_if<StreamPlan>(&route.by);
    constexpr Index block_entries = Index{1} << 22;
    const RowBlocks blocks = stream_plan
                                 ? stream_plan->blocks
                                 : RowBlocks{m, std::max(16 * (n + p), block_entries / std::max<Index>(1, n + p))};
    if (!arguments.out.empty())
        require_writable(arguments.out, {file_of_matrix(arguments.input), file_of_matrix(arguments.right_hand_sides),
                                         file_of_matrix(arguments.weights)});
    std::vector<double> weights;
    if (!arguments.weights.empty()) {
        MatrixFileOptions reading = arguments.reading;
        reading.columns.clear();
        reading.one_column = true;
        weights = read_weights(open_matrix(arguments.weights, reading, arguments.memory), m);
        options.weights = weights;
    }
    const std::vector<std::string> names = coefficient_names(A_file, options.intercept);

    Stopwatch watch;
    const StreamingR<T, D> stream = stream_rows<T>(ctx, A_file, b_file, blocks, options);
    const Regression fit = regression(ctx, stream, options);
    const double seconds = watch.seconds();
    if (!fit.dependent.empty() && arguments.solver.refuse_deficient)
        throw RankDeficient(fmt::format("{}: column {} depends on earlier columns: leave it out", A_file.path(),
                                        names[fit.dependent[0]]),
                            1 / fit.condition);
    throw_if_interrupted();
    if (!arguments.out.empty()) write_solution(arguments.out, fit.coefficients);

    if (arguments.common.json) {
        JsonLine line = line_of(A_file, p, scalar_kind<T>, "streaming-tsqr", seconds,
                                1e-9 * least_squares_flops(m, n, p) / seconds);
        add_device(line, device, stream.times().reading + stream.times().to_device, 0);
        add_rank(line, fit.condition, fit.rank, fit.dependent);
        add_statistics(line, fit, names, b_file.column_names());
        line.print();
        return;
    }
    for (Index c = 0; c < p; ++c) {
        if (!b_file.column_names().empty() || p > 1)
            fmt::print("{}{}:\n", c > 0 ? "\n" : "",
                       b_file.column_names().empty() ? fmt::format("right-hand side {}", c) : b_file.column_names()[c]);
        fmt::print("{}", summary(fit, names, c));
    }
    if (!arguments.out.empty()) fmt::print("wrote {}\n", arguments.out);
}

template <class T, class D>
void run_lstsq(Context<D>& ctx, DeviceInUse& device, const LstsqArguments& arguments, const MatrixFile& A_file,
               const MatrixFile& b_file) {
    constexpr bool transfers = !std::is_same_v<D, Host>;
    const Index m = A_file.rows(), n = A_file.cols(), p = b_file.cols();
    const Options options = arguments.common.options;
    const RoutePlan route = route_of<T>(ctx, arguments, A_file, b_file, n);
    const auto* stream = std::get_if<StreamPlan>(&route.by);
    if (stream && arguments.solver.mixed_precision)
        throw InvalidArgument(
            fmt::format("--mixed-precision: {} is streamed, and has to fit into memory for it", A_file.path()));
    require_writable(arguments.out, {file_of_matrix(arguments.input), file_of_matrix(arguments.right_hand_sides)});
    load_kernels<T>(ctx, m, n, device, [&](MatrixView<const T, D> small) {
        const MatrixView<const T, D> some = small.col_block({0, std::min<Index>(p, small.cols)});
        if (stream)
            StreamingR<T, D>(ctx, small.cols, some.cols).append(ctx, small, some);
        else
            least_squares<T, D>(ctx, small, some, arguments.solver, options);
    });

    double transfer_in_seconds = -1;
    StreamTimes times;
    Stopwatch watch;
    const LeastSquares<T, D> solution = [&] {
        if (stream) {
            const StreamingR<T, D> rows = stream_rows<T>(ctx, A_file, b_file, stream->blocks, {});
            times = rows.times();
            return rows.solve(ctx, arguments.solver);
        }
        const Matrix<T, D> A = read_matrix<T>(ctx, A_file), b = read_matrix<T>(ctx, b_file);
        transfer_in_seconds = watch.seconds();
        watch = {};
        ctx.reset_progress();
        const ProgressBar bar("solving", [&] { return ctx.flops_done() / std::get<Plan>(route.by).flops; });
        return naming_files<T>(A_file, b_file, 0,
                               [&] { return least_squares<T, D>(ctx, A.view(), b.view(), arguments.solver, options); });
    }();
    wait(ctx);
    const double seconds = stream || transfers ? watch.seconds() : solution.report.seconds;
    if (transfers && stream) transfer_in_seconds = times.reading + times.to_device;
    watch = {};
    const Matrix<T>& X = on_host(ctx, solution.X);
    const double transfer_out_seconds = watch.seconds();

    throw_if_interrupted();
    write_solution(arguments.out, X);

    const char* method = stream ? "streaming-tsqr" : to_string(solution.report.method);
    const double gflops = 1e-9 * least_squares_flops(m, n, p) / seconds;
    if (arguments.common.json) {
        JsonLine line = line_of(A_file, p, scalar_kind<T>, method, seconds, gflops);
        add_device(line, device, transfer_in_seconds, transfer_out_seconds);
        if (transfers && stream) add_stream_times(line, times);
        add_rank(line, solution.condition, solution.rank, solution.dependent);
        line.add("residual_norms", std::vector<double>(solution.residual_norms.begin(), solution.residual_norms.end()));
        if (arguments.solver.mixed_precision)
            line.add("refinement_steps", solution.refinement.steps).add("fell_back", solution.refinement.fell_back);
        line.print();
        return;
    }
    fmt::print("{}: {} x {}, {} right-hand side{}\n", A_file.path(), m, n, p, p == 1 ? "" : "s");
    fmt::print("method         {}\n", method);
    if (stream) print_blocks(*stream);
    print_device(arguments.common, device, transfer_in_seconds, transfer_out_seconds);
    if (transfers && stream) print_stream_times(times);
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s\n", seconds, gflops);
    if (const auto& [steps, reason] = solution.refinement; !reason.empty())
        fmt::print("precision      f64 after {} steps of refinement: {}\n", steps, reason);
    else if (arguments.solver.mixed_precision)
        fmt::print("precision      f32, and {} steps of refinement to f64\n", steps);
    fmt::print("condition      {:.3g} (estimate of κ₁ of the triangular factor)\n", solution.condition);
    fmt::print("rank           {} of {}\n", solution.rank, std::min(m, n));
    if (!solution.dependent.empty())
        fmt::print("dependent      {} {} (zero-based): without them the rank is the same\n", m < n ? "rows" : "columns",
                   named_columns(solution.dependent, m < n ? std::vector<std::string>() : A_file.column_names()));
    if (p > 0) {
        const auto [least, largest] =
            std::minmax_element(solution.residual_norms.begin(), solution.residual_norms.end());
        if (p == 1)
            fmt::print("‖Ax − b‖₂      {:.6e}\n", *least);
        else
            fmt::print("‖Ax − b‖₂      {:.6e} to {:.6e}\n", *least, *largest);
    }
    fmt::print("wrote          {}\n", arguments.out);
}

}  // namespace

void add_lstsq(CLI::App& program) {
    auto arguments = std::make_shared<LstsqArguments>();
    CLI::App& command = *program.add_subcommand(
        "lstsq",
        "Solve min ‖Ax − b‖₂ and write x.npy.\n"
        "\n"
        "A is m x n, b m x p, x n x p. If several x minimise it, as for m < n or dependent columns, x is the one of\n"
        "least norm, and the dependent columns are printed. A tall A larger than --memory, or than the memory of the\n"
        "GPU, is streamed.");
    command.add_option("A", arguments->input, fmt::format("Matrix: {}", matrix_formats))->required();
    command.add_option(
        "b", arguments->right_hand_sides,
        "Right-hand sides, one a column, in a file of the same formats. --columns chooses those of A alone");
    add_value(command, "--target", "COLUMN", arguments->target,
              "Column of the file A that is b, instead of a file b: a name of its header, or a number from 1.\n"
              "The other columns are A")
        ->excludes(command.get_option("b"));
    add_value(command, "--out", "FILE", arguments->out,
              "File for x: text for .txt and .csv, otherwise .npy (one-dimensional for one right-hand side).\n"
              "It must not be A, b or the weights. Needed unless --stats prints the coefficients");
    add_number(
        command, "--rcond", "X", arguments->solver.rcond, 0.0, 1.0,
        "Count singular values of A as zero if they are at most X times the largest. By default the rank does not\n"
        "depend on the units of the unknowns: it is full if 1/κ is above 10u with columns of unit norm (u = 6e-8 "
        "in\n"
        "f32 and 1.1e-16 in f64)");
    CLI::Option* const rcond = command.get_option("--rcond");
    constexpr const char* statistics = "Regression (each of these options prints its statistics)";
    command
        .add_flag("--stats", arguments->with_statistics,
                  "Print standard errors, t and p values, the residual standard error, R² and F. A coefficient whose\n"
                  "column depends on earlier columns is NA")
        ->excludes(rcond)
        ->group(statistics);
    command
        .add_flag("--intercept", arguments->regression.intercept,
                  "Add a column of ones before those of A, named (intercept)")
        ->excludes(rcond)
        ->group(statistics);
    add_value(command, "--weights", "FILE", arguments->weights,
              "A weight for each row: minimise Σ wᵢ (Ax − b)ᵢ². Rows of weight 0 do not count")
        ->excludes(rcond)
        ->group(statistics);
    add_number(command, "--ridge", "X", arguments->regression.ridge, 0.0, 1e300,
               "Minimise ‖Ax − b‖² + X ‖x‖² (the intercept is left out of ‖x‖)")
        ->excludes(rcond)
        ->group(statistics);
    command.add_flag("--refuse-deficient", arguments->solver.refuse_deficient,
                     "Stop with an error if the rank of A is not full");
    command
        .add_flag(
            "--mixed-precision", arguments->solver.mixed_precision,
            "Factor an f64 A, m >= n, in f32 and refine x to f64's accuracy; f64 alone solves the problem if that\n"
            "does not converge, as for κ above about 1e6")
        ->excludes("--stats")
        ->excludes("--intercept")
        ->excludes("--weights")
        ->excludes("--ridge");
    add_memory_argument(command, arguments->memory);
    add_reading_arguments(command, arguments->reading);
    add_device_argument(command, arguments->common.device);
    add_trace_argument(command, arguments->common.trace);
    add_common_arguments(command, arguments->common);
    command.footer(
        "Example:  quoin lstsq A.npy b.npy --out x.npy\n"
        "          quoin lstsq A.csv b.csv --stats --intercept\n"
        "          quoin lstsq table.csv --target price --stats --intercept\n"
        "\n"
        "Prints the residual norms ‖Ax − b‖₂, an estimate of κ₁, the wall time in seconds, and 10^9 flop/s by the\n"
        "standard count 2mn² − 2n³/3 + p(4mn − n²). --json prints rows, cols, right_hand_sides, dtype, method,\n"
        "seconds, gflops, device, condition, rank, dependent and residual_norms on one line. On a GPU it adds\n"
        "start_up_seconds, transfer_in_seconds and transfer_out_seconds; a stream adds the times that `quoin factor\n"
        "--help` explains.\n"
        "\n"
        "With statistics the names of coefficients are those in the header of A, or x1, x2, .... --json then has\n"
        "observations, degrees_of_freedom and, for each right-hand side, fits: coefficients (name, estimate,\n"
        "standard_error, t_value, p_value, error_bound), residual_norm, residual_standard_error, r_squared,\n"
        "adjusted_r_squared, f_value and f_p_value. error_bound limits the rounding errors of an estimate. After\n"
        "--ridge the estimates are biased, and t, p and F are null.");
    command.callback([arguments] {
        const bool has_target = !arguments->target.empty();
        if (!has_target && arguments->right_hand_sides.empty()) throw CLI::RequiredError("b, or --target,");
        if (arguments->input == "-" && arguments->right_hand_sides == "-")
            throw CLI::ValidationError("b", "A is read from standard input, so b needs a file");
        if (arguments->regression.intercept || arguments->regression.ridge > 0 || !arguments->weights.empty())
            arguments->with_statistics = true;
        if (arguments->out.empty() && !arguments->with_statistics) throw CLI::RequiredError("--out");
        if (arguments->with_statistics && arguments->common.options.method != Method::Auto)
            throw CLI::ValidationError("--method", "statistics are computed by streaming-tsqr alone");
        MatrixFileOptions reading_b = arguments->reading;
        reading_b.columns.clear();
        reading_b.one_column = true;
        const MatrixFile file = open_matrix(arguments->input, arguments->reading, arguments->memory);
        std::vector<Index> of_A(file.cols());
        std::iota(of_A.begin(), of_A.end(), Index(0));
        const Index target = has_target ? target_column(file, arguments->target) : -1;
        std::erase(of_A, target);
        const MatrixFile part(file, of_A),
            &A = has_target ? part : file,
            b = has_target ? MatrixFile(file, {target})
                           : open_matrix(arguments->right_hand_sides, reading_b, arguments->memory);
        if (A.rows() != b.rows())
            throw InvalidArgument(
                fmt::format("{}: has {} rows, and {} has {}", b.path(), b.rows(), A.path(), A.rows()));
        const bool f32 = A.dtype() == ScalarKind::F32 && b.dtype() == ScalarKind::F32;
        with_dtype(f32 ? ScalarKind::F32 : ScalarKind::F64, [&]<class T>(T) {
            on_device(
                arguments->common, matrix_in_words(A),
                [&](const auto& ctx) { return min_bytes<T>(ctx, A.rows(), A.cols(), route_options(*arguments, A, b)); },
                [&](auto& ctx, DeviceInUse& device) {
                    arguments->with_statistics ? run_regression<T>(ctx, device, *arguments, A, b)
                                               : run_lstsq<T>(ctx, device, *arguments, A, b);
                });
        });
    });
}

}  // namespace quoin::cli
