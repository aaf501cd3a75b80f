#pragma once

#include "quoin/cuda.hpp"

namespace quoin::bench {

/// The tree of a panel: rows of a leaf, columns of the panel, and children of a node.
struct TreeShape {
    Index leaf_rows, panel_width, fan_in;
};

/// The stages of CAQR by trees of batches, panel by panel. The two rates leave out the flops that the tree adds.
struct TreeStages {
    double update_gflops;  ///< 4mnp flops over the time of the updates of the trailing matrix; −1: there is none
    double factor_gflops;  ///< 2mn² flops over the time of the panels
    double tree_share;     ///< the share of both times beyond the leaves, which are timed alone
    double factor_leaves_ms, apply_leaves_ms, factor_ms, apply_ms, form_ms;
};
/// Returns the medians of 5 runs after 1, each on a fresh copy of the same random m×n matrix.
template <class T>
TreeStages measure_tree_stages(Context<Cuda>& ctx, Index m, Index n, const TreeShape& shape);

}  // namespace quoin::bench
