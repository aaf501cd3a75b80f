#pragma once

#include <algorithm>

#include "algorithms/tuning.hpp"
#include "quoin/cuda.hpp"

namespace quoin {

/// For Hopper (H100, 132 multiprocessors). Rows without a measurement beside them are first choices by counting.
template <>
struct Tuning<Cuda> {
    /// Columns of a Householder panel: the update is a GEMM of this depth.
    static Index panel_width(Index) { return 128; }
    /// Columns of a T inside a leaf: one T a leaf.
    static Index inner_block(Index n) { return n; }
    static constexpr Index tree_width = 32;
    static constexpr Index most_tree_cols = 32;
    /// Rows of a leaf: the tile of the tree kernels.
    static Index leaf_rows(Index, Index) { return 128; }
    static Index domain_leaves(Index) { return 1; }
    static constexpr Index fan_in = 4;
    /// Its passes run at the rate of GEMM, a tree's leaves do not.
    static constexpr bool r_only_by_tree = false;
    /// Columns whose reconstruction has its n×n steps in one kernel.
    static constexpr Index most_top_cols = 128;
    static constexpr Index tall_aspect = 4;
    static constexpr Index tall_cols = 1024;
    /// From here on Gram matrices and reconstruction beat a panel's reflectors one by one.
    static Index reconstruct_rows(Index width) { return std::max<Index>(2048, 4 * width); }
    /// Columns of a tall matrix that are reconstructed as one panel.
    static Index reconstruct_cols(Index m) { return m >= 65536 ? 192 : 128; }
};

}  // namespace quoin
