#pragma once

// Sums over very many panels or blocks in bounded time, for costs.

#include <algorithm>

#include "quoin/matrix.hpp"

namespace quoin {

/// Calls f(i, weight) for i in [0, count), so that Σ weight g(i) = Σ g(i). Up to 4096 indices all have weight 1. Beyond
/// that, the middle index of each of 4096 groups has the size of its group, which is nearly exact for costs, because
/// they are sums of powers of i. So a plan takes little time for any number of panels.
template <class F>
void for_each_sampled(Index count, F f) {
    const Index groups = std::min<Index>(count, 4096);
    for (Index g = 0, begin = 0; g < groups; ++g) {
        const Index size = count / groups + (g < count % groups ? 1 : 0);
        f(begin + size / 2, static_cast<double>(size));
        begin += size;
    }
}

}  // namespace quoin
