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

/// Adds --method as far as rows over ranks have one.
void add_rank_method(CLI::App& command, Options& options);

/// `quoin factor` by several ranks, each of which calls it with a context of its own: reads its rows of the file, factors them with
/// the others, and writes its rows of Q. Rank 0 writes R and prints the report, in which `unit` is what a rank
/// has: "2 threads each". What one rank cannot do is an error of all.
template <class T, class D>
void factor_by_ranks(Context<D>& ctx, RankSession& ranks, const FactorFiles& files, const CommonArguments& common,
                     const MatrixFile& file, const std::string& unit);

}  // namespace quoin::cli
