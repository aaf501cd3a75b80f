// The cases in the host's memory.

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "byte_size.hpp"
#include "cases.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "random_matrix.hpp"
#include "tracing.hpp"

namespace quoin::cli {

namespace {

class HostCases : public Cases {
public:
    explicit HostCases(const BenchArguments& arguments)
        : Cases(arguments),
          ctx_(make_context(arguments.common)),
          guard_(ctx_),
          tracing_(ctx_, arguments.common.trace),
          energy_(arguments, true, false) {
        describe();
    }

private:
    void describe() {
        const std::vector<ScalarKind> types = arguments_.dtypes_or({ScalarKind::F32, ScalarKind::F64});
        const auto uses = [&](ScalarKind type) { return std::find(types.begin(), types.end(), type) != types.end(); };
        limits_ = measure_machine_limits(uses(ScalarKind::F32), uses(ScalarKind::F64));
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

    /// LAPACK runs in turn with the first variant. The next call reuses the matrix if it has the same shape.
    template <class T>
    void measure(Shape shape, const std::vector<Variant>& variants, bool with_references, const Report& report) {
        unless_too_large(shape, scalar_kind<T>, [&] {
            const auto [m, n] = shape;
            Matrix<T>& A = std::get<Matrix<T>>(matrices_);
            const bool have_matrix = A.rows() == m && A.cols() == n;
            if (!have_matrix) matrices_ = {};
            const bool compared = with_references && arguments_.wants(Reference::Lapack);
            const auto settings_of = [&](std::size_t v) {
                return MeasureSettings{variants[v].second, arguments_.repeat, compared && v == 0,
                                       arguments_.energy ? &energy_.host : nullptr};
            };
            double needed = 0;
            for (std::size_t v = 0; v < variants.size(); ++v)
                needed = std::max(needed, measure_case_bytes<T>(ctx_, variants[v].first, m, n, settings_of(v)));
            if (!have_matrix) needed += static_cast<double>(m) * static_cast<double>(n) * sizeof(T);
            const double available = static_cast<double>(describe_machine().memory_available_bytes);
            if (needed > 0.9 * available) {
                throw OutOfMemory(fmt::format("{} needs {} of memory and {} is available", to_string(variants[0].first),
                                              format_byte_size(needed), format_byte_size(available)));
            }
            if (!have_matrix) A = normal_matrix<T>(m, n);
            std::vector<Measurement> results;
            for (std::size_t v = 0; v < variants.size(); ++v)
                results.push_back(measure_case<T>(ctx_, variants[v].first, std::as_const(A).view(), settings_of(v)));
            std::vector<TimedReference> references;
            if (compared)
                references.push_back({Reference::Lapack, results[0].reference_seconds, results[0].reference_joules});
            report(results, references);
        });
    }
    void measure(Shape shape, ScalarKind dtype, const std::vector<Variant>& variants, bool with_references,
                 const Report& report) override {
        with_dtype(dtype, [&]<class T>(T) { measure<T>(shape, variants, with_references, report); });
    }
    void write_trace() const override { tracing_.write(); }

    Context<Host> ctx_;
    InterruptGuard guard_;
    Tracing<Host> tracing_;
    EnergyMeters energy_;
    std::tuple<Matrix<float>, Matrix<double>> matrices_;  // at most one has entries
};

}  // namespace

std::unique_ptr<Cases> host_cases(const BenchArguments& arguments) { return std::make_unique<HostCases>(arguments); }

}  // namespace quoin::cli
