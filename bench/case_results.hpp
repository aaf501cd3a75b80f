#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"
#include "measure/measure_case.hpp"
#include "results.hpp"

namespace quoin::cli {

/// One line of results: Quoin on one case against one reference. Negative: not measured; 0: nothing required.
struct BenchRow : Measurement {
    Shape shape;
    ScalarKind dtype;
    Operation operation;
    double gflops, limit_fraction;
    std::string reference = {};  ///< "": none
    double reference_gflops = -1, ratio = -1, required_ratio = 0;
};

struct TimedReference {
    Reference reference;
    double seconds = 0;
    double joules = -1;
};

/// A row of what was measured, its rates filled in.
BenchRow bench_row(Shape shape, ScalarKind dtype, Operation operation, const Measurement& result,
                   const MachineLimits& limits);
/// Returns the row with the columns of a reference.
BenchRow against(BenchRow row, const std::string& reference, double reference_seconds, double reference_joules = -1);

/// Where results go, line after line as they come: a table for a person or JSON on stdout, and CSV in a file.
class BenchOutput {
public:
    /// Opens the CSV file. `with_requirements`: a column for them in the table. Throws UnwritableFile.
    BenchOutput(const BenchArguments& arguments, bool with_requirements, bool table = true);

    /// Prints the machine and its limits: as the first line of the table, on stderr with JSON, and as a comment in the
    /// CSV.
    void describe(const std::string& machine);
    void add(const BenchRow& row);
    /// Adds the row with each of the references, or once if there are none.
    void add(const BenchRow& row, const std::vector<TimedReference>& references);

private:
    void add_to_table(const BenchRow& row) const;

    bool energy_, with_requirements_, table_, json_;
    Results results_;
};

}  // namespace quoin::cli
