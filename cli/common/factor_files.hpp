#pragma once

#include <string>
#include <vector>

#include "quoin/file_qr.hpp"

namespace CLI {
class App;
}

namespace quoin::cli {

/// Input and outputs of `quoin factor`, in one process or in several.
struct FactorFiles {
    std::string input, out;
    bool r_only = false, verify = false;
    Index memory = 0;
    SecondPass second_pass = SecondPass::Auto;
    bool restart = false;

    /// Returns the options for factoring from file to file.
    FileOptions file_options() const {
        FileOptions options;
        options.want_q = !r_only || verify;
        options.second_pass = second_pass;
        options.restart = restart;
        return options;
    }
};
/// Adds A, --out, --r-only and --verify.
void add_factor_files(CLI::App& command, FactorFiles& files);

/// Adds --second-pass and --restart.
void add_file_route(CLI::App& command, FactorFiles& files);

/// All files that it may write.
inline const std::vector<std::string> every_output = {"P.npy", "Q.npy", "R.npy", "S.npy", "T.npy", "V.npy"};

/// Prints the accuracy that --verify has measured.
void print_accuracy(double residual, double orthogonality);

}  // namespace quoin::cli
