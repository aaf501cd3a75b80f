#pragma once

#include <algorithm>

#include "algorithms/tuning.hpp"
#include "quoin/cuda.hpp"

namespace quoin {

/// For Hopper (H100, 132 multiprocessors). Rows without a measurement beside them are first choices by counting.
template <>
struct Tuning<Cuda> {
    /// Columns of a Householder panel: the update is a GEMM of this depth. H100, 8192 rows, f32 / f64 ms, T included:
    ///   columns      32            64            128           256
    ///     256   1.49 /  1.61  1.70 /  1.83  1.63 /  1.80  1.64 /  1.81
    ///    1024   5.91 /  6.25  6.72 /  7.03  6.71 /  6.87  6.62 /  6.97
    ///    2048   12.1 /  12.7  13.7 /  13.9  13.2 /  13.6  13.3 /  13.7
    ///    8192                 63.1 /  66.2  58.9 /  58.2  60.3 /  57.7
    ///   16384² (f32)          266           232           225
    static Index panel_width(Index k) { return k <= 2048 ? 32 : k <= 8192 ? 128 : 256; }
    /// Columns of a T inside a leaf: one T a leaf.
    static Index inner_block(Index n) { return n; }
    static constexpr Index tree_width = 32;
    static constexpr Index most_tree_cols = 32;
    /// Rows of a leaf. H100, Q and R of 1 000 000×192, f32 / f64 ms (bench/results/h100_tree_tuning.csv): 128 rows 9.58 /
    /// 15.2, 256 rows 11.1 / 19.0. Tiles of 256 rows leave shared memory for fewer warps of the update.
    static Index leaf_rows(Index, Index) { return 128; }
    /// At most 792 domains, six for each multiprocessor. Leaves a domain: 8 9.00 / 14.9, 10 8.96 / 14.6, 15 8.98 / 14.2;
    /// factor_leaf on f32 prefers more domains (1.75 ms with 8, 2.20 with 15), the nodes and f64 fewer.
    static Index domain_leaves(Index leaves) { return (leaves + 791) / 792; }
    /// Three levels over up to 1000 domains; a level costs the latency of 32 reflectors, whatever its fan-in.
    static constexpr Index fan_in = 10;
    /// Its passes run at the rate of GEMM, a tree's leaves do not.
    static constexpr bool r_only_by_tree = false;
    static constexpr Index tall_aspect = 4;
    static constexpr Index tall_cols = 1024;
    /// Above what the panel kernel keeps in shared memory.
    static Index reconstruct_rows(Index width) { return std::max<Index>(16384, 4 * width); }
};

}  // namespace quoin
