#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace quoin::cli {

/// What `quoin factor` reads and writes, in one process or in several.
struct FactorFiles {
    std::string input, out;
    bool r_only = false, verify = false;
};
/// Adds A, --out, --r-only and --verify.
void add_factor_files(CLI::App& command, FactorFiles& files);

/// All that it writes, with one option or another.
inline const std::vector<std::string> every_output = {"Q.npy", "R.npy", "S.npy", "T.npy", "V.npy"};

/// What --verify has measured.
void print_accuracy(double residual, double orthogonality);

}  // namespace quoin::cli
