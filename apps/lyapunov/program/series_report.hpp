#pragma once

#include <string>

#include "quoin/apps/lyapunov_series.hpp"
#include "quoin/io.hpp"

namespace CLI {
class App;
}

namespace quoin::cli {

/// The options of `quoin lyapunov --series FILE`.
struct SeriesArguments {
    std::string file;
    SeriesOptions options;
    MatrixFileOptions reading{.one_column = true};
    std::string out, plot;  ///< folder and picture, or empty

    void add_to(CLI::App& command);
    /// Throws CLI::ValidationError for what belongs to systems.
    void check(const CLI::App& command) const;
};

/// Reads the series (a sample a row), prints the largest exponent by neighbours and all by Jacobians, and writes the
/// files asked for.
void run_series(Context<Host>& ctx, const SeriesArguments& arguments, bool json);

}  // namespace quoin::cli
