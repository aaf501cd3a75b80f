#pragma once

#include <string>

#include "arguments.hpp"
#include "factor_files.hpp"
#include "quoin/io.hpp"
#include "rank_session.hpp"

namespace CLI {
class App;
}

namespace quoin::cli {

/// Adds --method, with the methods for rows over ranks.
void add_rank_method(CLI::App& command, Options& options);

/// Runs `quoin factor` on several ranks. Every rank calls it with its own context. It reads its rows of the file,
/// factors them together with the other ranks, and writes its rows of Q. Rank 0 writes R and prints the report. `unit`
/// is the equipment of a rank in the report: "2 threads each". An error of one rank is an error of all.
template <class T, class D>
void factor_by_ranks(Context<D>& ctx, RankSession& ranks, const FactorFiles& files, const CommonArguments& common,
                     const MatrixFile& file, const std::string& unit);

}  // namespace quoin::cli
