#pragma once

#include "quoin/distributed.hpp"

namespace quoin::cli {

/// Measures the flops a second of one rank, which runs `plan.method` on enough of its rows for a good measurement, but
/// not on more than that. `ranks` ranks of `threads` threads do the same at the same time on this machine. Ranks that
/// share cores, caches or memory share the rate.
template <class T>
double measure_rank(int ranks, int threads, const RankPlan& plan, Index n, Options options);

}  // namespace quoin::cli
