#pragma once

#include <optional>

#include "arguments.hpp"
#include "factor_files.hpp"
#include "quoin/io.hpp"
#include "rank_session.hpp"

namespace quoin::cli {

/// Returns the options for factoring from file to file if the rows of some process do not fit `cap` bytes of its
/// memory. Returns nothing if the rows fit on every process. Every process calls it. Throws OutOfMemory or
/// InvalidArgument if neither is possible.
template <class T>
std::optional<FileOptions> files_beside_ranks(Context<Host>& ctx, RankSession& ranks, const FactorFiles& files,
                                              const CommonArguments& common, const MatrixFile& file, double cap);

/// Runs `quoin factor` from file to file by several processes, with a journal. Process 0 prints the report.
template <class T>
void factor_file_by_ranks(Context<Host>& ctx, RankSession& ranks, const FactorFiles& files,
                          const CommonArguments& common, const MatrixFile& file, const FileOptions& options);

}  // namespace quoin::cli
