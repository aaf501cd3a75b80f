#include "case_results.hpp"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "output_files.hpp"

namespace quoin::cli {

namespace {

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

BenchRow bench_row(Shape shape, ScalarKind dtype, Operation operation, const Measurement& result,
                   const MachineLimits& limits) {
    return {result,
            shape,
            dtype,
            operation,
            1e-9 * operation_flops(operation, shape.rows, shape.cols) / result.seconds,
            limit_fraction(operation, shape.rows, shape.cols, dtype, limits, result.seconds)};
}

BenchOutput::BenchOutput(const BenchArguments& arguments)
    : energy_(arguments.energy),
      with_requirements_(arguments.shapes.empty() && arguments.paper.empty()),
      json_(arguments.common.json),
      results_(arguments) {}

void BenchOutput::describe(const std::string& machine) {
    fmt::print(json_ ? stderr : stdout, "{}\n", machine);
    results_.describe(fmt::format("{}; {}", machine, today()));
    if (json_) return;
    fmt::print("{:>14}  {:4}  {:7}  {:20}  {:>10}  {:>8}  {:>5}  {:9}  {:>10}  {:>6}", "shape", "type", "op", "method",
               "seconds", "GFLOP/s", "limit", "reference", "seconds", "ratio");
    if (with_requirements_) fmt::print("  {:>12}", "required");
    fmt::print("  {:>11}  {:>11}", "‖I − QᵀQ‖", "‖A−QR‖/‖A‖");
    if (energy_) fmt::print("  {:>8}  {:>8}  {:>11}", "joules", "GFLOP/J", "ref. joules");
    fmt::print("\n");
}

void BenchOutput::add(const BenchRow& row) {
    JsonLine line = case_line(row.shape, row.dtype);
    line.add("op", to_string(row.operation)).add("method", to_string(row.method));
    line.add_measured("seconds", row.seconds).add_measured("gflops", row.gflops);
    line.add_measured("limit_fraction", row.limit_fraction);
    line.add_known("reference", row.reference);
    line.add_measured("reference_seconds", row.reference_seconds);
    line.add_measured("reference_gflops", row.reference_gflops).add_measured("ratio", row.ratio);
    line.add_measured("required_ratio", row.required_ratio > 0 ? row.required_ratio : -1);
    line.add_measured("orthogonality", row.orthogonality).add_measured("residual", row.residual);
    if (energy_) {
        line.add_measured("joules", row.joules).add_measured("gflop_per_joule", gflop_per_joule(row));
        line.add_measured("reference_joules", row.reference_joules);
    }
    results_.record(line);
    if (!json_) add_to_table(row);
}

void BenchOutput::add(const BenchRow& row, const std::vector<TimedReference>& references) {
    for (const TimedReference& r : references) {
        BenchRow against = row;
        against.reference = to_string(r.reference);
        against.reference_seconds = r.seconds;
        against.reference_joules = r.joules;
        against.reference_gflops = row.gflops * row.seconds / r.seconds;
        against.ratio = r.seconds / row.seconds;
        add(against);
    }
    if (references.empty()) add(row);
}

void BenchOutput::add_to_table(const BenchRow& row) const {
    fmt::print("{:>14}  {:4}  {:7}  {:20}  {:>10.4g}  {:>8.1f}  {:>4.0f}%  {:9}  {:>10}  {:>6}", to_string(row.shape),
               to_string(row.dtype), to_string(row.operation), to_string(row.method), row.seconds, row.gflops,
               100 * row.limit_fraction, row.reference.empty() ? "−" : row.reference,
               measured(row.reference_seconds, "{:.4g}"), measured(row.ratio, "{:.2f}"));
    if (with_requirements_) fmt::print("  {:>12}", verdict(row.required_ratio, row.ratio));
    fmt::print("  {:>11}  {:>11}", measured(row.orthogonality, "{:.2e}"), measured(row.residual, "{:.2e}"));
    if (energy_) {
        fmt::print("  {:>8}  {:>8}  {:>11}", measured(row.joules, "{:.4g}"), measured(gflop_per_joule(row), "{:.3g}"),
                   measured(row.reference_joules, "{:.4g}"));
    }
    fmt::print("\n");
    flush_output();
}

}  // namespace quoin::cli
