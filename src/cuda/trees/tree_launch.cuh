#pragma once

// How the steps of a tree choose among the sizes that their kernels are compiled for.

#include <algorithm>
#include <type_traits>

#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "cuda/trees/wy_tile.cuh"

namespace quoin::cuda {

/// No blocks, no launch.
template <class... Parameters, class... Arguments>
void launch(Context<Cuda>& ctx, const char* name, void (*kernel)(Parameters...), Index blocks, int threads,
            std::size_t shared, const Arguments&... arguments) {
    if (blocks == 0) return;
    const LaunchShape shape{static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared};
    check(cuda::launch(kernel, shape, ctx.stream(), arguments...), name);
}

/// Calls `work` with the constant among `values`, ascending, that is the first to reach `wanted`, or else the last.
template <int... values, class Work>
void with_least(Index wanted, Work work) {
    constexpr int last = std::max({values...});
    with_first([&](int value) { return value >= wanted || value == last; }, work,
               std::integral_constant<int, values>()...);
}
/// The rows of the tiles that hold the tree's leaves.
template <class Work>
void with_tile_rows(const PanelTree& tree, Work work) {
    with_least<64, 128, most_leaf_rows>(std::min(tree.leaf_rows, tree.rows), work);
}
/// Calls `work` with the warps of a node, and whether there are rectangles among the tiles. A warp holds one tile, up
/// to the limit of a block.
template <class Work>
void with_node_warps(const TreeGeometry& geometry, Work work) {
    const Index tiles = (geometry.fan_in - 1) * geometry.member_tiles();
    if (geometry.member_tiles() == 1) {
        with_least<1, 3, 9, most_node_warps>(tiles, [&](auto warps) { work(warps, std::false_type()); });
    } else {
        with_least<3, 9, most_node_warps>(tiles, [&](auto warps) { work(warps, std::true_type()); });
    }
}

/// How p columns are shared out: tiles of equally many warps, at most `most`, of `strip_cols` columns each.
struct ColumnTiles {
    ColumnTiles(Index p, Index most) {
        const Index strips = (p + strip_cols - 1) / strip_cols;
        tiles = (strips + most - 1) / most;
        warps = tiles > 0 ? static_cast<int>((strips + tiles - 1) / tiles) : 0;
    }
    Index tiles;
    int warps;
};

}  // namespace quoin::cuda
