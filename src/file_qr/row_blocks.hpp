#pragma once

// Sizes of the blocks of rows in a flat tree.

#include <algorithm>

#include "quoin/matrix.hpp"

namespace quoin {

/// m rows of a file of n columns (m > n), from row `first` on, in blocks of h, the first one of n + h: every node of
/// the flat tree over them has n + h rows but the last, which may have fewer.
struct FileRowBlocks {
    Index m, n, h, first = 0;

    Index count() const { return (m - n + h - 1) / h; }
    Range rows(Index i) const { return {first + (i == 0 ? 0 : n + i * h), first + std::min(m, n + (i + 1) * h)}; }
    Index node_rows(Index i) const { return n + std::min(h, m - n - i * h); }
    /// Rows of the node that are A's; R lies above them.
    Range own_rows(Index i) const { return {i == 0 ? 0 : n, node_rows(i)}; }
};

}  // namespace quoin
