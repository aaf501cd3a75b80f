#pragma once

#include <string>

#include "arguments.hpp"
#include "csv_file.hpp"
#include "measure_case.hpp"

namespace quoin::cli {

/// One line of results: Quoin on one case against one reference. Negative: not measured; 0: nothing required.
struct BenchRow {
    Shape shape;
    DType dtype = DType::F64;
    Operation operation = Operation::ThinQr;
    Method method = Method::Auto;
    double seconds = -1;
    double gflops = -1;
    double limit_fraction = -1;
    std::string reference;  ///< "": none
    double reference_seconds = -1;
    double reference_gflops = -1;
    double ratio = -1;
    double required_ratio = 0;
    double orthogonality = -1;
    double residual = -1;
    double joules = -1;
    double reference_joules = -1;
};

/// A row of what was measured, its rates filled in.
BenchRow bench_row(Shape shape, DType dtype, Operation operation, const Measurement& result,
                   const MachineLimits& limits);
/// The same row against a reference.
BenchRow against(BenchRow row, const std::string& reference, double reference_seconds, double reference_joules = -1);

/// Where results go, line after line as they come: a table for a person or JSON on stdout, and CSV in a file.
class BenchOutput {
public:
    struct Format {
        bool json = false;
        std::string csv;                 ///< a path, or empty
        bool with_requirements = false;  ///< a column for them in the table
        bool table = true;               ///< rows on stdout where it is not JSON
        bool energy = false;             ///< columns for it
    };
    /// Opens the CSV file. Throws UnwritableFile.
    explicit BenchOutput(const Format& format);

    /// The machine and its limits: the first line of the table, of stderr beside JSON, and a comment in the CSV.
    void describe(const std::string& machine);
    void add(const BenchRow& row);

private:
    void add_to_table(const BenchRow& row) const;
    void add_to_csv(const BenchRow& row) const;

    Format format_;
    CsvFile csv_;
};

}  // namespace quoin::cli
