// The cases of the command line, or of Quoin's requirements, with A in the host's memory.

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "byte_size.hpp"
#include "case_results.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "measure/machine_limits.hpp"
#include "random_matrix.hpp"
#include "studies.hpp"
#include "tracing.hpp"

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

/// Runs cases one after the other. Neighbouring cases share their matrix.
class HostBench {
public:
    explicit HostBench(const BenchArguments& arguments)
        : arguments_(arguments),
          with_requirements_(arguments.shapes.empty()),
          against_lapack_(arguments.wants(Reference::Lapack)),
          cases_(with_requirements_ ? required_cases() : requested_cases(arguments)),
          ctx_(make_context(arguments.common)),
          guard_(ctx_),
          tracing_(ctx_, arguments.common.trace),
          output_(arguments, with_requirements_),
          energy_(arguments, true, false) {}

    void run() {
        const auto uses = [&](ScalarKind dtype) {
            return std::any_of(cases_.begin(), cases_.end(), [&](const Case& c) { return c.dtype == dtype; });
        };
        limits_ = measure_machine_limits(uses(ScalarKind::F32), uses(ScalarKind::F64));
        describe();
        for (const Case& c : cases_) with_dtype(c.dtype, [&]<class T>(T) { run_case<T>(c); });
        if (!arguments_.common.json) print_growth(growth_);
        tracing_.write();
    }

private:
    void describe() {
        std::string text = describe_host(ctx_) + ": ";
        if (limits_.gemm_f64 > 0)
            text += fmt::format("f64 limit {:.0f} GFLOP/s (DGEMM {:.0f}), ", 1e-9 * limits_.arithmetic_f64,
                                1e-9 * limits_.gemm_f64);
        if (limits_.gemm_f32 > 0)
            text += fmt::format("f32 limit {:.0f} GFLOP/s (SGEMM {:.0f}), ", 1e-9 * limits_.arithmetic_f32,
                                1e-9 * limits_.gemm_f32);
        text += fmt::format("copy {:.1f} GB/s read and written", 1e-9 * limits_.copy);
        output_.describe(text);
        warn_about_host();
    }

    template <class T>
    void run_case(const Case& c) {
        throw_if_interrupted();
        const auto [m, n] = c.shape;
        MeasureSettings settings{arguments_.common.options, arguments_.repeat, against_lapack_ && !c.growth,
                                 arguments_.energy ? &energy_.host : nullptr};
        Matrix<T>& A = std::get<Matrix<T>>(matrices_);
        const bool have_matrix = A.rows() == m && A.cols() == n;
        if (!have_matrix) matrices_ = {};
        const double matrix_bytes = static_cast<double>(m) * static_cast<double>(n) * sizeof(T);
        const double needed =
            measure_case_bytes<T>(ctx_, c.operation, m, n, settings) + (have_matrix ? 0 : matrix_bytes);
        const double available = static_cast<double>(describe_machine().memory_available_bytes);
        if (needed > 0.9 * available) {
            fmt::print(stderr, "quoin: skipped {} {} {}: it needs {} of memory and {} is available\n",
                       to_string(c.operation), to_string(c.shape), to_string(c.dtype), format_byte_size(needed),
                       format_byte_size(available));
            return;
        }
        if (!have_matrix) {
            A = Matrix<T>(m, n);
            fill_normal(A, /*seed=*/1);
        }
        const Measurement result = measure_case<T>(ctx_, c.operation, std::as_const(A).view(), settings);
        if (c.growth) growth_.emplace_back(c, result.seconds);

        BenchRow row = bench_row(c.shape, c.dtype, c.operation, result, limits_);
        row.required_ratio = c.required_ratio;
        output_.add(result.reference_seconds < 0
                        ? row
                        : against(row, "lapack", result.reference_seconds, result.reference_joules));
    }

    const BenchArguments& arguments_;
    bool with_requirements_, against_lapack_;
    std::vector<Case> cases_;
    Context<Host> ctx_;
    InterruptGuard guard_;
    Tracing<Host> tracing_;
    BenchOutput output_;
    EnergyMeters energy_;
    MachineLimits limits_;
    std::tuple<Matrix<float>, Matrix<double>> matrices_;  // at most one has entries
    std::vector<std::pair<Case, double>> growth_;
};

}  // namespace

void bench_on_host(const BenchArguments& arguments) { HostBench(arguments).run(); }

}  // namespace quoin::cli
