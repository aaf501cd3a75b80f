#pragma once

#include <span>
#include <vector>

#include "quoin/apps/lyapunov.hpp"

namespace quoin {

/// Sums of log|r_ii| over consecutive batches of segments: 128 to 256 batches of one length, which doubles when they
/// are 256 and two become one. So the memory of a run does not grow, and the batches outgrow any correlation.
class BatchSums {
public:
    explicit BatchSums(Index exponents) : p(exponents), current(static_cast<std::size_t>(exponents), 0.) {}

    /// One segment.
    void add(std::span<const double> logarithms);

    Index batches() const { return static_cast<Index>(sums.size()) / p; }
    Index segments() const { return batches() * length + filled; }
    /// Over all segments, p.
    std::vector<double> total() const;

    Index p;
    Index length = 1, filled = 0;  ///< segments of a batch, and of the one that is not complete
    std::vector<double> current;   ///< sums of that one
    std::vector<double> sums;      ///< p × batches
};

}  // namespace quoin
