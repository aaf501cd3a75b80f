#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "case_results.hpp"
#include "interrupt.hpp"
#include "studies.hpp"
#include "tracing.hpp"

namespace quoin::cli {

/// Times Quoin and its references on random matrices in a GPU's memory, one matrix after the other.
class DeviceCases {
public:
    /// Opens the output and measures the limits of the GPU. `by_default`: the references where --against names none.
    DeviceCases(const BenchArguments& arguments, const std::vector<Reference>& by_default, bool with_requirements,
                bool table);

    using Variant = std::pair<Operation, Options>;
    using Report = std::function<void(const std::vector<Measurement>&, const std::vector<TimedReference>&)>;
    /// Calls `report(medians of the variants, references)` for one random matrix. All run by turns, the host's LAPACK
    /// after them. What the memory of the device cannot hold is skipped with a line on stderr.
    template <class T>
    void measure(Shape shape, const std::vector<Variant>& variants, const Report& report);

    /// The references in the order of measurement.
    const std::vector<Reference>& references() const { return references_; }
    const MachineLimits& limits() const { return limits_; }
    BenchOutput& output() { return output_; }
    /// Writes the timeline of --trace.
    void write_trace() const { tracing_.write(); }

private:
    bool uses(Reference reference) const;
    void describe();
    template <class T>
    TimedReference lapack_on_host(Shape shape, bool thin_q);

    const BenchArguments& arguments_;
    Context<Host> host_;
    InterruptGuard guard_;
    Context<Cuda> ctx_;
    Tracing<Cuda> tracing_;
    MachineLimits limits_;
    BenchOutput output_;
    std::vector<Reference> references_;
    std::optional<EnergyMeters> energy_;
};

}  // namespace quoin::cli
