#include "host_cases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "byte_size.hpp"
#include "machine.hpp"
#include "random_matrix.hpp"

namespace quoin::cli {

HostCases::HostCases(const BenchArguments& arguments, const std::vector<Reference>&, bool with_requirements, bool table)
    : arguments_(arguments),
      ctx_(make_context(arguments.common)),
      guard_(ctx_),
      tracing_(ctx_, arguments.common.trace),
      output_(arguments, with_requirements, table),
      energy_(arguments, true, false) {
    if (arguments.wants(Reference::Lapack)) references_.push_back(Reference::Lapack);
    describe();
}

void HostCases::describe() {
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

template <class T>
void HostCases::measure(Shape shape, const std::vector<Variant>& variants, const Report& report, bool with_references) {
    unless_too_large(shape, scalar_kind<T>, [&] {
        const auto [m, n] = shape;
        Matrix<T>& A = std::get<Matrix<T>>(matrices_);
        const bool have_matrix = A.rows() == m && A.cols() == n;
        if (!have_matrix) matrices_ = {};
        const bool compared = with_references && !references_.empty();
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
        if (!have_matrix) {
            A = Matrix<T>(m, n);
            fill_normal(A, /*seed=*/1);
        }
        std::vector<Measurement> results;
        for (std::size_t v = 0; v < variants.size(); ++v)
            results.push_back(measure_case<T>(ctx_, variants[v].first, std::as_const(A).view(), settings_of(v)));
        std::vector<TimedReference> references;
        if (compared)
            references.push_back({Reference::Lapack, results[0].reference_seconds, results[0].reference_joules});
        report(results, references);
    });
}

template void HostCases::measure<float>(Shape, const std::vector<Variant>&, const Report&, bool);
template void HostCases::measure<double>(Shape, const std::vector<Variant>&, const Report&, bool);

}  // namespace quoin::cli
