#pragma once

#include <algorithm>

#include "quoin/matrix.hpp"

namespace quoin {

/// f(i, weight) for i in [0, count), so that Σ weight g(i) = Σ g(i): every i with weight 1 up to 4096 of them. Beyond, the middle
/// one of each of 4096 groups with the size of its group, which is as good as exact for costs, sums of powers of i. So a plan is
/// made at once, however many panels the matrix has.
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
