#pragma once

#include <algorithm>

#include "algorithms/tuning.hpp"
#include "quoin/cuda.hpp"

namespace quoin {

/// For Hopper (H100, 132 multiprocessors). Rows without a measurement beside them are first choices by counting.
template <>
struct Tuning<Cuda> {
    /// Columns of a Householder panel: the update is a GEMM of this depth. H100, ?geqrf's format, ms:
    ///                    f32: 64     128     192    f64: 64     128     192
    ///   8192 × 256          0.759   0.765                1.163   1.172
    ///   8192 × 1024         3.32    3.41    3.28         5.02    5.45    4.23
    ///   8192 × 4096                 16.5    15.5                 22.3    18.7
    ///   8192²                       39.3    37.0                 45.8    40.7
    ///   10 000²                     65.6    58.1                 72.5    60.1
    /// Panels of 192 columns are reconstructed (reconstruct_rows), those of 64 and 128 factored column by column.
    static Index panel_width(Index k) { return k >= 1024 ? 192 : 128; }
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
    static constexpr Index tall_aspect = 4;
    static constexpr Index tall_cols = 1024;
    /// Rows from which on a panel is reconstructed. The steps between the Gram matrices cost the host some 0.3 ms, which
    /// wide panels repay; narrow ones where their kernel's registers do not hold them.
    static Index reconstruct_rows(Index width) { return width > 128 ? 2048 : 16384; }
    /// Columns of a tall matrix that are reconstructed as one panel.
    static Index reconstruct_cols(Index m) { return m >= 65536 ? 192 : 0; }
};

}  // namespace quoin
