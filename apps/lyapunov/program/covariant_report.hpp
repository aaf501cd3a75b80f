#pragma once

#include <string>

#include "quoin/apps/covariant_lyapunov.hpp"

namespace quoin::cli {

/// Where the results of `--covariant` go.
struct CovariantOutput {
    std::string out;  ///< a folder, or empty
    bool json = false;
    double window = 0;  ///< of finite-time exponents; 0: ten segments
};

/// `quoin lyapunov SYSTEM --covariant`: computes the vectors, and prints and writes what follows from them. Ctrl-C ends
/// it.
void run_covariant(Context<Host>& ctx, TangentMap<>& system, const CovariantOptions& options,
                   const CovariantOutput& output);

}  // namespace quoin::cli
