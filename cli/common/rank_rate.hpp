#pragma once

#include "quoin/distributed.hpp"

namespace quoin::cli {

/// Flops a second of one rank: of `plan.method` on as many of its rows as tell, and not so many that it takes long, while `ranks` of so many
/// threads do the same on this machine. Ranks that share cores, caches or memory share the rate.
template <class T>
double measure_rank(int ranks, int threads, const RankPlan& plan, Index n, Options options);

}  // namespace quoin::cli
