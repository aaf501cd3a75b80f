// The cases of the command line, or of Quoin's requirements, with A in the host's memory.

#include <fmt/format.h>

#include <algorithm>

#include "host_cases.hpp"

namespace quoin::cli {

namespace {

/// The cases of Quoin's requirements. Cases of one matrix are neighbours.
std::vector<Case> required_cases() {
    using enum ScalarKind;
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
    for (const ScalarKind dtype : {F64, F32})
        for (const Index rows : {100000, 250000, 500000, 1000000, 2000000, 4000000})
            cases.push_back({{rows, 64}, dtype, ThinQr, 0, /*growth=*/true});
    return cases;
}

constexpr double allowed_growth = 0.15;

/// Time per row must not depend on the number of rows.
void print_growth(const std::vector<std::pair<Case, double>>& growth) {
    for (const ScalarKind dtype : {ScalarKind::F64, ScalarKind::F32}) {
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

}  // namespace

void bench_on_host(const BenchArguments& arguments) {
    const bool with_requirements = arguments.shapes.empty();
    HostCases cases(arguments, {}, with_requirements, /*table=*/true);
    std::vector<std::pair<Case, double>> growth;
    for (const Case& c : requested_cases(arguments, required_cases())) {
        const auto report = [&](const std::vector<Measurement>& results,
                                const std::vector<TimedReference>& references) {
            if (c.growth) growth.emplace_back(c, results.front().seconds);
            BenchRow row = bench_row(c.shape, c.dtype, c.operation, results.front(), cases.limits());
            row.required_ratio = c.required_ratio;
            cases.output().add(row, references);
        };
        with_dtype(c.dtype, [&]<class T>(T) {
            cases.measure<T>(c.shape, {{c.operation, arguments.common.options}}, report, !c.growth);
        });
    }
    if (!arguments.common.json) print_growth(growth);
    cases.write_trace();
}

}  // namespace quoin::cli
