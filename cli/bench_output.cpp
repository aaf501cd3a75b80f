#include "bench_output.hpp"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "json_line.hpp"

namespace quoin::cli {

namespace {

/// "−" where nothing was measured.
std::string measured(double value, const char* format) {
    return value < 0 ? "−" : fmt::format(fmt::runtime(format), value);
}

std::string verdict(double required_ratio, double ratio) {
    if (required_ratio <= 0) return "";
    return fmt::format("{} {}", required_ratio, ratio < 0 ? "−" : ratio >= required_ratio ? "met" : "MISSED");
}

/// 10^9 flops a joule, in the count that gflops is in.
double gflop_per_joule(const BenchRow& row) { return row.joules < 0 ? -1 : row.gflops * row.seconds / row.joules; }

std::string today() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    char text[sizeof "2026-11-21"];
    std::strftime(text, sizeof text, "%F", std::gmtime(&now));
    return text;
}

}  // namespace

BenchRow bench_row(Shape shape, DType dtype, Operation operation, const Measurement& result,
                   const MachineLimits& limits) {
    BenchRow row;
    row.shape = shape;
    row.dtype = dtype;
    row.operation = operation;
    row.method = result.method;
    row.seconds = result.seconds;
    row.gflops = 1e-9 * operation_flops(operation, shape.rows, shape.cols) / result.seconds;
    row.limit_fraction = limit_fraction(operation, shape.rows, shape.cols, dtype, limits, result.seconds);
    row.orthogonality = result.orthogonality;
    row.residual = result.residual;
    row.joules = result.joules;
    return row;
}

BenchRow against(BenchRow row, const std::string& reference, double reference_seconds, double reference_joules) {
    row.reference_joules = reference_joules;
    row.reference = reference;
    row.reference_seconds = reference_seconds;
    row.reference_gflops = row.gflops * row.seconds / reference_seconds;
    row.ratio = reference_seconds / row.seconds;
    return row;
}

BenchOutput::BenchOutput(const Format& format) : format_(format), csv_(format.csv) {}

void BenchOutput::describe(const std::string& machine) {
    fmt::print(format_.json ? stderr : stdout, "{}\n", machine);
    csv_.print(
        "# quoin {}; {}; {}\n"
        "rows,cols,dtype,op,method,seconds,gflops,limit_fraction,reference,reference_seconds,"
        "reference_gflops,ratio,required_ratio,orthogonality,residual{}\n",
        version(), machine, today(), format_.energy ? ",joules,gflop_per_joule,reference_joules" : "");
    if (format_.json || !format_.table) return;
    fmt::print("{:>14}  {:4}  {:7}  {:20}  {:>10}  {:>8}  {:>5}  {:9}  {:>10}  {:>6}", "shape", "type", "op", "method",
               "seconds", "GFLOP/s", "limit", "reference", "seconds", "ratio");
    if (format_.with_requirements) fmt::print("  {:>12}", "required");
    fmt::print("  {:>11}  {:>11}", "‖I − QᵀQ‖", "‖A−QR‖/‖A‖");
    if (format_.energy) fmt::print("  {:>8}  {:>8}  {:>11}", "joules", "GFLOP/J", "ref. joules");
    fmt::print("\n");
}

void BenchOutput::add(const BenchRow& row) {
    add_to_csv(row);
    if (format_.json) {
        JsonLine line;
        line.add("rows", row.shape.rows).add("cols", row.shape.cols).add("dtype", to_string(row.dtype));
        line.add("op", to_string(row.operation)).add("method", to_string(row.method));
        line.add_measured("seconds", row.seconds).add_measured("gflops", row.gflops);
        line.add_measured("limit_fraction", row.limit_fraction);
        if (row.reference.empty())
            line.add_null("reference");
        else
            line.add("reference", row.reference);
        line.add_measured("reference_seconds", row.reference_seconds);
        line.add_measured("reference_gflops", row.reference_gflops).add_measured("ratio", row.ratio);
        line.add_measured("required_ratio", row.required_ratio > 0 ? row.required_ratio : -1);
        line.add_measured("orthogonality", row.orthogonality).add_measured("residual", row.residual);
        if (format_.energy) {
            line.add_measured("joules", row.joules).add_measured("gflop_per_joule", gflop_per_joule(row));
            line.add_measured("reference_joules", row.reference_joules);
        }
        line.print();
    } else if (format_.table) {
        add_to_table(row);
    }
}

void BenchOutput::add_to_table(const BenchRow& row) const {
    fmt::print("{:>14}  {:4}  {:7}  {:20}  {:>10.4g}  {:>8.1f}  {:>4.0f}%  {:9}  {:>10}  {:>6}",
               fmt::format("{}x{}", row.shape.rows, row.shape.cols), to_string(row.dtype), to_string(row.operation),
               to_string(row.method), row.seconds, row.gflops, 100 * row.limit_fraction,
               row.reference.empty() ? "−" : row.reference, measured(row.reference_seconds, "{:.4g}"),
               measured(row.ratio, "{:.2f}"));
    if (format_.with_requirements) fmt::print("  {:>12}", verdict(row.required_ratio, row.ratio));
    fmt::print("  {:>11}  {:>11}", measured(row.orthogonality, "{:.2e}"), measured(row.residual, "{:.2e}"));
    if (format_.energy) {
        fmt::print("  {:>8}  {:>8}  {:>11}", measured(row.joules, "{:.4g}"), measured(gflop_per_joule(row), "{:.3g}"),
                   measured(row.reference_joules, "{:.4g}"));
    }
    fmt::print("\n");
    std::fflush(stdout);
}

void BenchOutput::add_to_csv(const BenchRow& row) const {
    const auto number = [](double value) { return value < 0 ? "" : fmt::format("{:.6g}", value); };
    const std::string energy = format_.energy ? fmt::format(",{},{},{}", number(row.joules),
                                                            number(gflop_per_joule(row)), number(row.reference_joules))
                                              : "";
    csv_.print("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}{}\n", row.shape.rows, row.shape.cols, to_string(row.dtype),
               to_string(row.operation), to_string(row.method), number(row.seconds), number(row.gflops),
               number(row.limit_fraction), row.reference, number(row.reference_seconds), number(row.reference_gflops),
               number(row.ratio), number(row.required_ratio > 0 ? row.required_ratio : -1), number(row.orthogonality),
               number(row.residual), energy);
}

}  // namespace quoin::cli
