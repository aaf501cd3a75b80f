#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "case_results.hpp"
#include "studies.hpp"

namespace quoin::cli {

/// Times Quoin and its references on random matrices in the memory of a device, one matrix after the other.
class Cases {
public:
    virtual ~Cases() = default;
    /// Adds a row for each case with every reference, and writes the timeline of --trace. If `together`, neighbours
    /// with one shape and type are timed by turns on one matrix. What the memory cannot hold is skipped with a line on
    /// stderr.
    void run(const std::vector<Case>& cases, bool together = false);
    /// Returns the seconds of the cases with `growth`.
    const std::vector<std::pair<Case, double>>& growth() const { return growth_; }

protected:
    using Variant = std::pair<Operation, Options>;
    using Report = std::function<void(const std::vector<Measurement>&, const std::vector<TimedReference>&)>;

    explicit Cases(const BenchArguments& arguments) : arguments_(arguments), output_(arguments) {}
    /// Calls `report(medians of the variants, references)` for one random matrix. The references run only if wanted.
    virtual void measure(Shape shape, ScalarKind dtype, const std::vector<Variant>& variants, bool with_references,
                         const Report& report) = 0;
    virtual void write_trace() const = 0;

    const BenchArguments& arguments_;
    BenchOutput output_;
    MachineLimits limits_;

private:
    std::vector<std::pair<Case, double>> growth_;
};

/// Opens the output and measures the limits of the machine. LAPACK is the only reference.
std::unique_ptr<Cases> host_cases(const BenchArguments& arguments);
/// Opens the output and measures the limits of the GPU. `by_default`: the references where --against names none.
std::unique_ptr<Cases> device_cases(const BenchArguments& arguments, const std::vector<Reference>& by_default);

}  // namespace quoin::cli
