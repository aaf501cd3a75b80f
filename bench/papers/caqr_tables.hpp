#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "arguments.hpp"

namespace quoin::cli {

/// Rates that the paper printed for one code, one for each shape.
struct PublishedRates {
    const char* code;  ///< as a `reference` of the results: "caqr-2011"
    const char* heading;
    std::vector<double> gflops;
};

/// A table or a figure of Anderson, Ballard, Demmel and Keutzer: single precision QR of matrices on one GPU.
struct PaperTable {
    const char* title;
    const char* published;  ///< the machine of the paper's own figures, and the paper's remarks
    bool speedups = false;  ///< print Quoin's speed over each reference instead of rates
    std::vector<Shape> shapes;
    std::vector<PublishedRates> rates;
};

/// Table I, Figure 8 and Figure 9 of the IPDPS paper of 2011.
const std::vector<PaperTable>& paper_tables();

}  // namespace quoin::cli
