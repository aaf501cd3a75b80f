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

/// Where results go, line after line as they come: a table for a person or JSON on stdout, and CSV in a file.
class BenchOutput {
public:
    /// Opens the CSV file. The table has a column for requirements where the cases are those. Throws UnwritableFile.
    explicit BenchOutput(const BenchArguments& arguments);

    /// Prints the machine and its limits: as the first line of the table, on stderr with JSON, and as a comment in the
    /// CSV.
    void describe(const std::string& machine);
    /// Adds the row with each of the references, or once if there are none.
    void add(const BenchRow& row, const std::vector<TimedReference>& references);

private:
    void add(const BenchRow& row);
    void add_to_table(const BenchRow& row) const;

    bool energy_, with_requirements_, json_;
    Results results_;
};

}  // namespace quoin::cli
