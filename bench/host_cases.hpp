#pragma once

#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "case_results.hpp"
#include "interrupt.hpp"
#include "studies.hpp"
#include "tracing.hpp"

namespace quoin::cli {

/// Times Quoin and LAPACK on random matrices in the host's memory, as `DeviceCases` does on a GPU.
class HostCases {
public:
    /// Opens the output and measures the limits of the machine. LAPACK is among the references unless --against names
    /// others; the host has no further ones.
    HostCases(const BenchArguments& arguments, const std::vector<Reference>& by_default, bool with_requirements,
              bool table);

    using Variant = std::pair<Operation, Options>;
    using Report = std::function<void(const std::vector<Measurement>&, const std::vector<TimedReference>&)>;
    /// Calls `report(medians of the variants, references)` for one random matrix, which the next call reuses if it has
    /// the same shape. LAPACK runs in turn with the first variant, unless `with_references` is false. What the memory
    /// cannot hold is skipped with a line on stderr.
    template <class T>
    void measure(Shape shape, const std::vector<Variant>& variants, const Report& report, bool with_references = true);

    const std::vector<Reference>& references() const { return references_; }
    const MachineLimits& limits() const { return limits_; }
    BenchOutput& output() { return output_; }
    /// Writes the timeline of --trace.
    void write_trace() const { tracing_.write(); }

private:
    void describe();

    const BenchArguments& arguments_;
    Context<Host> ctx_;
    InterruptGuard guard_;
    Tracing<Host> tracing_;
    MachineLimits limits_;
    BenchOutput output_;
    EnergyMeters energy_;
    std::vector<Reference> references_;
    std::tuple<Matrix<float>, Matrix<double>> matrices_;  // at most one has entries
};

}  // namespace quoin::cli
