#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "flop_counts.hpp"
#include "json_line.hpp"
#include "memory_cap.hpp"
#include "naming_file.hpp"
#include "output_files.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"
#include "streaming_layout.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

struct LstsqArguments {
    CommonArguments common;
    std::string input, right_hand_sides, out;
    double rcond = -1;
    Index memory = 0;
};

/// Calls `f()`, which works on rows A and b of the two files that begin at `first_row`; NaN or Inf is laid to the file that
/// holds it.
template <class T, class F>
decltype(auto) naming_files(const MatrixFile& A_file, const MatrixFile& b_file, MatrixView<const T> b, Index first_row,
                            F&& f) {
    try {
        return f();
    } catch (const NonFiniteEntry& e) {
        const bool in_b = e.col < b.cols && !std::isfinite(b(e.row, e.col));
        throw in_file(e, in_b ? b_file.path() : A_file.path(), first_row);
    }
}

template <class T>
LeastSquares<T> solve_streaming(Context<Host>& ctx, const MatrixFile& A_file, const MatrixFile& b_file,
                                RowBlocks blocks, double rcond) {
    StreamingR<T> stream(ctx, A_file.cols(), b_file.cols());
    BlockReader<T> A_reader(A_file, blocks), b_reader(b_file, blocks);
    for_each_block("solving", blocks, Order::Forward, [&](Range rows) {
        const MatrixView<const T> A = A_reader.read(rows), b = b_reader.read(rows);
        naming_files(A_file, b_file, b, rows.begin, [&] { stream.append(ctx, A, b); });
    });
    return stream.solve(ctx, rcond);
}

template <class T>
void run_lstsq(const LstsqArguments& arguments, const MatrixFile& A_file, const MatrixFile& b_file) {
    const Index m = A_file.rows(), n = A_file.cols(), p = b_file.cols();
    Context<Host> ctx = make_context(arguments.common);
    const InterruptGuard guard(ctx);
    const Options options = arguments.common.options;
    const Plan plan = plan_qr<T>(ctx, std::max(m, n), std::min(m, n), options);

    // A, the copy that is factored, b and Qᵀb
    const double in_memory = sizeof(T) * (2.0 * static_cast<double>(m) * static_cast<double>(n) +
                                          2.0 * static_cast<double>(std::max(m, n)) * static_cast<double>(p)) +
                             plan.workspace_bytes + reader_bytes(b_file);
    const double cap = memory_cap(arguments.memory);
    std::optional<StreamingMemory> streaming;
    if (can_stream(m, n, options.method)) {
        streaming = streaming_r_memory(n, p, sizeof(T));
        streaming->fixed += reader_bytes(b_file);
    }
    const std::optional<RowBlocks> blocks = choose_blocks(A_file, cap, in_memory, streaming);
    require_writable(arguments.out);

    const Stopwatch watch;
    const LeastSquares<T> solution = [&] {
        if (blocks) return solve_streaming<T>(ctx, A_file, b_file, *blocks, arguments.rcond);
        const Matrix<T> A = read_matrix<T>(A_file), b = read_matrix<T>(b_file);
        ctx.reset_progress();
        const ProgressBar bar("solving", [&] { return ctx.flops_done() / plan.flops; });
        return naming_files(A_file, b_file, b.view(), 0,
                            [&] { return least_squares<T, Host>(ctx, A.view(), b.view(), arguments.rcond, options); });
    }();
    const double seconds = blocks ? watch.seconds() : solution.report.seconds;

    throw_if_interrupted();
    if (p == 1)
        write_npy(arguments.out, std::vector<T>(solution.X.data(), solution.X.data() + n));
    else
        write_npy<T>(arguments.out, solution.X.view());

    const char* method = blocks ? "streaming-tsqr" : to_string(solution.report.method);
    const double gflops = 1e-9 * least_squares_flops(m, n, p) / seconds;
    if (arguments.common.json) {
        JsonLine()
            .add("rows", m)
            .add("cols", n)
            .add("right_hand_sides", p)
            .add("dtype", to_string(sizeof(T) == sizeof(float) ? DType::F32 : DType::F64))
            .add("method", method)
            .add("seconds", seconds)
            .add("gflops", gflops)
            .add("condition", solution.condition)
            .add("residual_norms", std::vector<double>(solution.residual_norms.begin(), solution.residual_norms.end()))
            .print();
        return;
    }
    fmt::print("{}: {} x {}, {} right-hand side{}\n", A_file.path(), m, n, p, p == 1 ? "" : "s");
    fmt::print("method         {}\n", method);
    if (blocks) print_blocks(*blocks, cap);
    fmt::print("time           {:.3g} s, {:.3g} GFLOP/s\n", seconds, gflops);
    fmt::print("condition      {:.3g} (estimate of κ₁ of the triangular factor)\n", solution.condition);
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
        "Solve min ‖Ax − b‖₂ and write x.npy.\n\n"
        "A is m x n and of full rank, b m x p, x n x p. With fewer rows than columns, x is the solution of Ax = b of\n"
        "least norm. A tall A larger than --memory is streamed. A numerically rank-deficient A is an error: its\n"
        "solution would mean nothing.");
    command.add_option("A", arguments->input, "Matrix: .npy, Matrix Market or CSV")->required();
    command.add_option("b", arguments->right_hand_sides, "Right-hand sides, one a column")->required();
    command.add_option("--out", arguments->out, "File for x, .npy (one-dimensional for one right-hand side)")
        ->required()
        ->type_name("FILE");
    command
        .add_option("--rcond", arguments->rcond,
                    "Refuse A where 1/κ of its scaled triangular factor is at or below this\n(default: 10u, u = 6e-8 "
                    "in f32 and 1.1e-16 in f64)")
        ->check(CLI::Range(0.0, 1.0).description(""))
        ->type_name("X");
    add_memory_argument(command, arguments->memory);
    add_common_arguments(command, arguments->common);
    command.footer(
        "Example:  quoin lstsq A.npy b.npy --out x.npy\n\n"
        "Prints the residual norms ‖Ax − b‖₂ and an estimate of κ₁, seconds of wall time and 10^9 flop/s by the\n"
        "standard count 2mn² − 2n³/3 + p(4mn − n²). --json prints rows, cols, right_hand_sides, dtype, method,\n"
        "seconds, gflops, condition and residual_norms on one line.");
    command.callback([arguments] {
        const MatrixFile A(arguments->input), b(arguments->right_hand_sides);
        if (A.rows() != b.rows())
            throw InvalidArgument(
                fmt::format("{}: has {} rows, and {} has {}", b.path(), b.rows(), A.path(), A.rows()));
        const bool f32 = A.dtype() == DType::F32 && b.dtype() == DType::F32;
        with_dtype(f32 ? DType::F32 : DType::F64, [&]<class T>(T) { run_lstsq<T>(*arguments, A, b); });
    });
}

}  // namespace quoin::cli
