#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "byte_size.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "machine.hpp"
#include "machine_limits.hpp"
#include "measure_case.hpp"
#include "random_matrix.hpp"
#include "subcommands.hpp"

namespace quoin::cli {

namespace {

struct BenchArguments {
    CommonArguments common;
    std::vector<Shape> shapes;
    std::vector<DType> dtypes = {DType::F64};
    std::vector<Operation> operations = {Operation::ThinQr};
    bool against_lapack = true;
    int repeat = 0;
};

struct Case {
    Shape shape;
    DType dtype = DType::F64;
    Operation operation = Operation::ThinQr;
    double required_ratio = 0;  ///< 0: none
    bool growth = false;        ///< one of the cases whose time per row is compared; without a reference
};

/// The cases that Quoin's requirements name, those of one matrix side by side.
std::vector<Case> required_cases() {
    using enum DType;
    using enum Operation;
    std::vector<Case> cases = {
        {{1000000, 192}, F64, ThinQr, 6}, {{1000000, 192}, F64, ROnly, 5},  {{1000000, 192}, F64, Geqrf, 3},
        {{1000000, 192}, F32, ThinQr, 5}, {{1000000, 192}, F32, ROnly, 4},  {{110592, 100}, F64, ThinQr, 4},
        {{110592, 100}, F32, ThinQr, 4},  {{100000, 192}, F64, ThinQr, 4},  {{100000, 192}, F32, ThinQr, 4},
        {{4000000, 8}, F64, ThinQr, 4},   {{4000000, 8}, F32, ThinQr, 4},   {{8192, 64}, F64, ThinQr, 2},
        {{8192, 64}, F32, ThinQr, 2},     {{8192, 256}, F64, ThinQr, 2},    {{8192, 256}, F32, ThinQr, 2},
        {{8192, 512}, F64, ThinQr, 2},    {{8192, 512}, F32, ThinQr, 2},    {{1000, 1000}, F64, Geqrf, 1},
        {{1000, 1000}, F32, Geqrf, 1},    {{2000, 2000}, F64, Geqrf, 1},    {{2000, 2000}, F32, Geqrf, 1},
        {{4000, 4000}, F64, Geqrf, 1.15}, {{4000, 4000}, F32, Geqrf, 1.15},
    };
    for (const DType dtype : {F64, F32})
        for (const Index rows : {100000, 250000, 500000, 1000000, 2000000, 4000000})
            cases.push_back({{rows, 64}, dtype, ThinQr, 0, /*growth=*/true});
    return cases;
}

constexpr double allowed_growth = 0.15;

std::vector<Case> requested_cases(const BenchArguments& arguments) {
    std::vector<Case> cases;
    for (const Shape shape : arguments.shapes)
        for (const DType dtype : arguments.dtypes)
            for (const Operation operation : arguments.operations) cases.push_back({shape, dtype, operation});
    return cases;
}

void print_header(bool with_requirements) {
    fmt::print("{:>14}  {:4}  {:7}  {:20}  {:>10}  {:>8}  {:>5}  {:>10}  {:>6}", "shape", "type", "op", "method",
               "seconds", "GFLOP/s", "limit", "LAPACK s", "ratio");
    if (with_requirements) fmt::print("  {:>12}", "required");
    fmt::print("  {:>11}  {:>11}\n", "‖I − QᵀQ‖", "‖A−QR‖/‖A‖");
}

/// "−" where nothing was measured.
std::string measured(double value, const char* format) {
    return value < 0 ? "−" : fmt::format(fmt::runtime(format), value);
}

std::string verdict(double required_ratio, double ratio) {
    if (required_ratio <= 0) return "";
    return fmt::format("{} {}", required_ratio, ratio < 0 ? "−" : ratio >= required_ratio ? "met" : "MISSED");
}

void print_row(const Case& c, const Measurement& result, double gflops, double limit, double ratio,
               bool with_requirements) {
    fmt::print("{:>14}  {:4}  {:7}  {:20}  {:>10.4g}  {:>8.1f}  {:>4.0f}%  {:>10}  {:>6}",
               fmt::format("{}x{}", c.shape.rows, c.shape.cols), to_string(c.dtype), to_string(c.operation),
               to_string(result.method), result.seconds, gflops, 100 * limit,
               measured(result.reference_seconds, "{:.4g}"), measured(ratio, "{:.2f}"));
    if (with_requirements) fmt::print("  {:>12}", verdict(c.required_ratio, ratio));
    fmt::print("  {:>11}  {:>11}\n", measured(result.orthogonality, "{:.2e}"), measured(result.residual, "{:.2e}"));
    std::fflush(stdout);
}

void print_json(const Case& c, const Measurement& result, double gflops, double limit, double ratio) {
    JsonLine line;
    line.add("rows", c.shape.rows).add("cols", c.shape.cols).add("dtype", to_string(c.dtype));
    line.add("op", to_string(c.operation)).add("method", to_string(result.method)).add("seconds", result.seconds);
    line.add("gflops", gflops).add("limit_fraction", limit);
    if (result.reference_seconds < 0)
        line.add_null("reference");
    else
        line.add("reference", "lapack");
    line.add_measured("reference_seconds", result.reference_seconds).add_measured("ratio", ratio);
    line.add_measured("orthogonality", result.orthogonality).add_measured("residual", result.residual);
    line.print();
}

/// Time per row must not depend on the number of rows.
void print_growth(const std::vector<std::pair<Case, double>>& growth) {
    for (const DType dtype : {DType::F64, DType::F32}) {
        std::vector<double> seconds_a_row;
        for (const auto& [c, seconds] : growth)
            if (c.dtype == dtype) seconds_a_row.push_back(seconds / static_cast<double>(c.shape.rows));
        if (seconds_a_row.empty()) continue;
        const auto [least, most] = std::minmax_element(seconds_a_row.begin(), seconds_a_row.end());
        const double spread = *most / *least - 1;
        fmt::print(
            "time per row, thin-qr {} n = 64: {:.3g} to {:.3g} ns, spread {:.0f}% (required: within {:.0f}%) {}\n",
            to_string(dtype), 1e9 * *least, 1e9 * *most, 100 * spread, 100 * allowed_growth,
            spread <= allowed_growth ? "met" : "MISSED");
    }
}

/// Runs cases one after the other; those of one matrix in a row share it.
class Bench {
public:
    explicit Bench(const BenchArguments& arguments)
        : arguments_(arguments),
          with_requirements_(arguments.shapes.empty()),
          cases_(with_requirements_ ? required_cases() : requested_cases(arguments)),
          ctx_(make_context(arguments.common)),
          guard_(ctx_) {}

    void run() {
        const auto uses = [&](DType dtype) {
            return std::any_of(cases_.begin(), cases_.end(), [&](const Case& c) { return c.dtype == dtype; });
        };
        const Machine machine = describe_machine();
        limits_ = measure_machine_limits(uses(DType::F32), uses(DType::F64));
        print_machine(machine);
        if (!arguments_.common.json) print_header(with_requirements_);
        for (const Case& c : cases_) with_dtype(c.dtype, [&]<class T>(T) { run_case<T>(c); });
        if (!arguments_.common.json) print_growth(growth_);
    }

private:
    void print_machine(const Machine& machine) const {
        std::string text = fmt::format("{}, {} threads, {}: ", machine.cpu, ctx_.threads(), build_info().blas);
        if (limits_.gemm_f64 > 0)
            text += fmt::format("f64 limit {:.0f} GFLOP/s (DGEMM {:.0f}), ", 1e-9 * limits_.arithmetic_f64,
                                1e-9 * limits_.gemm_f64);
        if (limits_.gemm_f32 > 0)
            text += fmt::format("f32 limit {:.0f} GFLOP/s (SGEMM {:.0f}), ", 1e-9 * limits_.arithmetic_f32,
                                1e-9 * limits_.gemm_f32);
        text += fmt::format("copy {:.1f} GB/s read and written", 1e-9 * limits_.copy);
        fmt::print(arguments_.common.json ? stderr : stdout, "{}\n", text);
        if (const std::string warning = build_info().blas_warning; !warning.empty())
            fmt::print(stderr, "quoin: {}\n", warning);
        if (const std::string warning = machine.busy(); !warning.empty()) fmt::print(stderr, "quoin: {}\n", warning);
    }

    template <class T>
    void run_case(const Case& c) {
        throw_if_interrupted();
        const auto [m, n] = c.shape;
        MeasureSettings settings{arguments_.common.options, arguments_.repeat, arguments_.against_lapack && !c.growth};
        Matrix<T>& A = matrix_of<T>();
        const bool have_matrix = A.rows() == m && A.cols() == n;
        if (!have_matrix) A32_ = {}, A64_ = {};
        const double matrix_bytes = static_cast<double>(m) * static_cast<double>(n) * sizeof(T);
        const double needed =
            measure_case_bytes<T>(ctx_, c.operation, m, n, settings) + (have_matrix ? 0 : matrix_bytes);
        const double available = static_cast<double>(describe_machine().memory_available_bytes);
        if (needed > 0.9 * available) {
            fmt::print(stderr, "quoin: skipped {} {}x{} {}: it needs {} of memory and {} is available\n",
                       to_string(c.operation), m, n, to_string(c.dtype), format_byte_size(needed),
                       format_byte_size(available));
            return;
        }
        if (!have_matrix) {
            A = Matrix<T>(m, n);
            fill_normal(A, /*seed=*/1);
        }
        const Measurement result = measure_case<T>(ctx_, c.operation, std::as_const(A).view(), settings);
        if (c.growth) growth_.emplace_back(c, result.seconds);

        const double gflops = 1e-9 * operation_flops(c.operation, m, n) / result.seconds;
        const double limit = limit_fraction(c.operation, m, n, c.dtype, limits_, result.seconds);
        const double ratio = result.reference_seconds < 0 ? -1 : result.reference_seconds / result.seconds;
        if (arguments_.common.json)
            print_json(c, result, gflops, limit, ratio);
        else
            print_row(c, result, gflops, limit, ratio, with_requirements_);
    }

    template <class T>
    Matrix<T>& matrix_of() {
        if constexpr (std::is_same_v<T, float>)
            return A32_;
        else
            return A64_;
    }

    const BenchArguments& arguments_;
    bool with_requirements_;
    std::vector<Case> cases_;
    Context<Host> ctx_;
    InterruptGuard guard_;
    MachineLimits limits_;
    Matrix<float> A32_;  // at most one of the two holds a matrix
    Matrix<double> A64_;
    std::vector<std::pair<Case, double>> growth_;
};

}  // namespace

void add_bench(CLI::App& program) {
    auto arguments = std::make_shared<BenchArguments>();
    CLI::App& command = *program.add_subcommand(
        "bench",
        "Time Quoin against LAPACK through the same BLAS.\n\n"
        "Both factor the same random matrix, in one process. Runs alternate between the two, in place, on a matrix\n"
        "restored outside the timed region; medians are printed. Without a shape, every case that Quoin's\n"
        "requirements name is run (10 minutes, 6 GiB), and what was required is printed beside what was measured.");
    command
        .add_option_function<std::vector<std::string>>(
            "shape",
            [arguments](const std::vector<std::string>& texts) {
                for (const std::string& text : texts) {
                    const Shape shape = parse_shape("SHAPE", text);
                    if (shape.rows == 0 || shape.cols == 0)
                        throw CLI::ValidationError("SHAPE", fmt::format("'{}' has nothing to time", text));
                    arguments->shapes.push_back(shape);
                }
            },
            "Rows and columns, such as 1000000x192; any number of shapes")
        ->type_name("SHAPE");
    command
        .add_option_function<std::string>(
            "--dtype",
            [arguments](const std::string& text) { arguments->dtypes = parse_list("--dtype", text, parse_dtype); },
            "f32, f64 or f32,f64 (default: f64)")
        ->type_name("TYPES");
    command
        .add_option_function<std::string>(
            "--op",
            [arguments](const std::string& text) {
                arguments->operations =
                    parse_list("--op", text, [](const std::string& argument, const std::string& name) {
                        return parse_name(argument, name, all_operations, [](Operation op) { return to_string(op); });
                    });
            },
            "Operations, separated by commas (default: thin-qr):\n"
            "thin-qr   R and thin Q            against geqrf + orgqr\n"
            "r-only    R                       against geqrf\n"
            "geqrf     LAPACK's V, tau and R   against geqrf\n"
            "lstsq     one right-hand side     against gels\n"
            "svd       thin U, s and Vᵀ        against gesdd")
        ->type_name("OPS");
    command
        .add_option_function<std::string>(
            "--against",
            [arguments](const std::string& text) {
                arguments->against_lapack = parse_name("--against", text, {true, false},
                                                       [](bool lapack) { return lapack ? "lapack" : "none"; });
            },
            "lapack or none (default: lapack)")
        ->type_name("REFERENCE");
    command
        .add_option("--repeat", arguments->repeat,
                    "Timed runs (default: at least 5, more for short ones, 3 beyond 2 s a run, 1 beyond 10 s)")
        ->check(CLI::Range(1, 1000000).description(""))
        ->type_name("N");
    add_common_arguments(command, arguments->common);
    command.footer(
        "Example:  quoin bench 1000000x192 --dtype f32,f64 --op thin-qr,r-only --against lapack --json\n\n"
        "seconds         median wall time\n"
        "GFLOP/s         by the standard Householder count, for both: 2mn² − 2n³/3 for geqrf and r-only, twice that\n"
        "                for thin-qr\n"
        "limit           the least time this machine could take over the time taken: the larger of flops / GEMM\n"
        "                rate and bytes / copy rate, both measured at the start and printed; beyond 100% where\n"
        "                the method needs fewer flops or has faster kernels than the BLAS (see quoin info)\n"
        "ratio           LAPACK's time over Quoin's\n"
        "‖I − QᵀQ‖, ‖A − QR‖/‖A‖   of Quoin's last answer, in the Frobenius norm; null or − where not measured\n\n"
        "--json prints one line a case with the keys rows, cols, dtype, op, method, seconds, gflops, limit_fraction,\n"
        "reference, reference_seconds, ratio, orthogonality, residual.");
    command.callback([arguments] { Bench(*arguments).run(); });
}

}  // namespace quoin::cli
