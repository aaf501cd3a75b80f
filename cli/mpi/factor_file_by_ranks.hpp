#pragma once

#include <optional>

#include "arguments.hpp"
#include "factor_files.hpp"
#include "quoin/io.hpp"
#include "rank_session.hpp"

namespace quoin::cli {

/// How the processes take the rows of a file from file to file where those of one do not fit `cap` bytes of its memory; nothing
/// where they fit everywhere. Every process calls it. Throws OutOfMemory or InvalidArgument where neither can be.
template <class T>
std::optional<FileOptions> files_beside_ranks(Context<Host>& ctx, RankSession& ranks, const FactorFiles& files,
                                              const CommonArguments& common, const MatrixFile& file, double cap);

/// `quoin factor` from file to file by several processes, with a journal. Process 0 prints the report.
template <class T>
void factor_file_by_ranks(Context<Host>& ctx, RankSession& ranks, const FactorFiles& files,
                          const CommonArguments& common, const MatrixFile& file, const FileOptions& options);

}  // namespace quoin::cli
