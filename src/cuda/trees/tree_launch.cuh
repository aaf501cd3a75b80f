#pragma once

// How the steps of a tree choose among the sizes that their kernels are compiled for.

#include <algorithm>
#include <type_traits>

#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/launch.hpp"
#include "cuda/runtime/state.hpp"
#include "cuda/trees/wy_tile.cuh"

namespace quoin::cuda {

/// No blocks, no launch.
template <class... Parameters, class... Arguments>
void launch(Context<Cuda>& ctx, const char*, void (*kernel)(Parameters...), Index blocks, int threads,
            std::size_t shared, const Arguments&... arguments) {
    if (blocks == 0) return;
    const LaunchShape shape{static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared};
    cuda::launch(ctx.stream(), kernel, shape, arguments...);
}

/// Calls `work` with the rows of the tiles that hold the tree's leaves.
template <class Work>
void with_tile_rows(const PanelTree& tree, Work work) {
    with_row<std::size(leaf_tile_rows)>(leaf_row(std::min(tree.leaf_rows, tree.rows)),
                                        [&](auto row) { work(std::integral_constant<int, leaf_tile_rows[row]>()); });
}
/// Calls `work` with the warps of a node, and whether there are rectangles among the tiles.
template <class Work>
void with_node_warps(const TreeGeometry& geometry, Work work) {
    const bool has_rectangles = geometry.member_tiles() > 1;
    with_row<std::size(node_warps)>(node_row(geometry.fan_in, geometry.member_tiles()), [&](auto row) {
        using Warps = std::integral_constant<int, node_warps[row]>;
        if constexpr (row > 0) {
            if (has_rectangles) return work(Warps(), std::true_type());
        }
        work(Warps(), std::false_type());
    });
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
