#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "memory_cap.hpp"
#include "naming_file.hpp"
#include "output_files.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

struct RpcaArguments {
    CommonArguments common;
    std::string input, out, pursuit = "alm", route = "auto";
    double lambda = 0, mu = 0, rho = 1.5, tolerance = 1e-5;
    Index iterations = 1000, max_rank = 0, memory = 0;
    bool nan_is_missing = false;
};

Pursuit parse_pursuit(const std::string& text) {
    return parse_name("--pursuit", text, {Pursuit::InexactAlm, Pursuit::AlternatingDirections},
                      [](Pursuit pursuit) { return pursuit == Pursuit::InexactAlm ? "alm" : "alternating"; });
}

ThresholdRoute parse_route(const std::string& text) {
    return parse_name("--route", text, {ThresholdRoute::Auto, ThresholdRoute::Qr, ThresholdRoute::Gram},
                      [](ThresholdRoute route) {
                          return route == ThresholdRoute::Auto ? "auto" : route == ThresholdRoute::Qr ? "qr" : "gram";
                      });
}

/// One line on stderr, rewritten, where stderr is a terminal.
class StepLine {
public:
    explicit StepLine(double tolerance) : tolerance_(tolerance) {}
    ~StepLine() {
        if (drawn_) fmt::print(stderr, "\r\x1b[K");
    }
    void draw(const RobustPcaStep& step) {
        if (!isatty(STDERR_FILENO) || step.seconds < 1) return;
        if (first_residual_ == 0) first_ = step.iteration, first_residual_ = step.residual;
        const double rate = static_cast<double>(step.iteration) / step.seconds;
        // the residual falls by about one factor an iteration
        const double fall = std::log(first_residual_ / step.residual) / static_cast<double>(step.iteration - first_);
        const double left = std::log(step.residual / tolerance_) / fall / rate;
        fmt::print(stderr, "\r\x1b[Kiteration {}  residual {:.1e}  rank {}  {:.1f} it/s{}", step.iteration,
                   step.residual, step.rank, rate,
                   std::isfinite(left) && left > 0 ? fmt::format("  {:.0f} s left", left) : "");
        std::fflush(stderr);
        drawn_ = true;
    }

private:
    double tolerance_, first_residual_ = 0;
    Index first_ = 0;
    bool drawn_ = false;
};

template <class T>
void run_rpca(Context<Host>& ctx, const RpcaArguments& arguments, const MatrixFile& file) {
    const Index m = file.rows(), n = file.cols();
    const double bytes = 6.0 * sizeof(T) * static_cast<double>(m) * static_cast<double>(n),
                 cap = memory_cap(arguments.memory);
    if (bytes > cap) {
        throw OutOfMemory(
            fmt::format("{}: robust PCA of {} x {} {} needs {:.3g} GB, and {:.3g} GB may be used (--memory)",
                        file.path(), m, n, to_string(file.dtype()), bytes / 1e9, cap / 1e9));
    }
    OutputDirectory directory(arguments.out);
    const std::string L_path = directory.file("L.npy"), S_path = directory.file("S.npy");

    const Matrix<T> M = file.read<T>();
    Matrix<std::uint8_t> observed;
    RobustPcaOptions<T> options;
    options.pursuit = parse_pursuit(arguments.pursuit);
    options.route = parse_route(arguments.route);
    options.lambda = arguments.lambda;
    options.mu = arguments.mu;
    options.rho = arguments.rho;
    options.tolerance = arguments.tolerance;
    options.max_iterations = arguments.iterations;
    options.max_rank = arguments.max_rank;
    if (arguments.nan_is_missing) {
        observed = Matrix<std::uint8_t>(m, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) observed(i, j) = !std::isnan(M(i, j));
        }
        options.observed = observed.view();
    }
    StepLine line(options.tolerance);
    options.on_step = [&](const RobustPcaStep& step) {
        line.draw(step);
        return true;
    };
    const RobustPca<T> f =
        naming_file(file.path(), 0, [&] { return robust_pca<T, Host>(ctx, M.view(), std::move(options)); });
    throw_if_interrupted();
    write_npy<T>(L_path, f.L.view());
    write_npy<T>(S_path, f.S.view());
    directory.keep();

    const double rate = f.last.seconds > 0 ? static_cast<double>(f.last.iteration) / f.last.seconds : 0;
    if (arguments.common.json) {
        JsonLine json;
        json.add("rows", m).add("cols", n).add("dtype", to_string(file.dtype())).add("end", to_string(f.end));
        json.add("iterations", f.last.iteration).add("seconds", f.last.seconds).add("iterations_per_second", rate);
        json.add("rank", f.last.rank).add("nonzeros", f.last.nonzeros).add("residual", f.last.residual);
        json.add("objective", f.last.objective).add("lambda", f.lambda);
        json.print();
        return;
    }
    fmt::print("{}: {} x {} {}\n", file.path(), m, n, to_string(file.dtype()));
    fmt::print("end            {} after {} iterations, {:.3g} s, {:.3g} iterations/s\n", to_string(f.end),
               f.last.iteration, f.last.seconds, rate);
    if (f.end != PursuitEnd::Converged) {
        fmt::print("warning        the residual is above --tol {:.1e}{}\n", arguments.tolerance,
                   f.end == PursuitEnd::Stalled ? ", and the type cannot come nearer" : ": raise --iterations");
    }
    fmt::print("L              rank {}\n", f.last.rank);
    fmt::print("S              {} nonzeros, {:.3g}%\n", f.last.nonzeros,
               m > 0 && n > 0
                   ? 100.0 * static_cast<double>(f.last.nonzeros) / static_cast<double>(m) / static_cast<double>(n)
                   : 0.0);
    fmt::print("residual       {:.3e}\n", f.last.residual);
    fmt::print("objective      {:.6g} = ‖L‖_* + λ‖S‖₁, λ = {:.4g}\n", f.last.objective, f.lambda);
    fmt::print("wrote          {}, {}\n", L_path, S_path);
}

}  // namespace

void add_rpca(CLI::App& program) {
    auto arguments = std::make_shared<RpcaArguments>();
    CLI::App& command = *program.add_subcommand(
        "rpca",
        "Robust PCA: M = L + S with L of low rank and S sparse.\n\n"
        "Principal component pursuit, min ‖L‖_* + λ‖S‖₁ (Candès, Li, Ma and Wright 2011). Of a fixed camera's video, "
        "one\n"
        "frame a column, L is the background and S the moving foreground. Writes L.npy and S.npy.");
    command.add_option("M", arguments->input, "Matrix: .npy, Matrix Market or CSV")->required();
    command.add_option("--out", arguments->out, "Folder for L.npy and S.npy, created if missing")
        ->required()
        ->type_name("DIR");
    command
        .add_option("--pursuit", arguments->pursuit,
                    "alm: augmented Lagrangian with growing μ; alternating: constant μ, slower, a lower objective")
        ->capture_default_str();
    command.add_option("--route", arguments->route, "Singular values of an iterate by auto, qr or gram")
        ->capture_default_str();
    command.add_option("--lambda", arguments->lambda, "Weight of ‖S‖₁; 0: 1/√max(m, n)")->capture_default_str();
    command.add_option("--mu", arguments->mu, "First μ; 0: Quoin chooses")->capture_default_str();
    command.add_option("--rho", arguments->rho, "Growth of μ an iteration")->capture_default_str();
    command.add_option("--tol", arguments->tolerance, "Of the residual ‖M − L − S‖ / ‖M‖; f32 reaches about 1e-6")
        ->capture_default_str();
    command.add_option("--iterations", arguments->iterations, "At most so many")->capture_default_str();
    command.add_option("--max-rank", arguments->max_rank, "Of L; 0: any")->capture_default_str();
    command.add_flag("--nan-is-missing", arguments->nan_is_missing, "NaN in M marks an entry that was not observed");
    add_memory_argument(command, arguments->memory);
    add_common_arguments(command, arguments->common, /*algorithm=*/false);
    command.footer(
        "Example:  quoin rpca video.npy --out parts\n\n"
        "--json prints rows, cols, dtype, end, iterations, seconds, iterations_per_second, rank, nonzeros, residual,\n"
        "objective and lambda on one line.");
    command.callback([arguments] {
        const MatrixFile file(arguments->input);
        Context<Host> ctx = make_context(arguments->common);
        const InterruptGuard guard(ctx);
        with_dtype(file.dtype(), [&]<class T>(T) { run_rpca<T>(ctx, *arguments, file); });
    });
}

}  // namespace quoin::cli
