// The reflectors of a tree (trees/factor_leaf.cuh, trees/factor_node.cuh).

#include "cuda/trees/factor_leaf.cuh"
#include "cuda/trees/factor_node.cuh"
#include "cuda/trees/tree_launch.cuh"
#include "cuda/trees/tree_steps.hpp"

namespace quoin::cuda {

template <class T>
void factor_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, MatrixView<T, Cuda> V,
                      MatrixView<T, Cuda> Tf) {
    with_tile_rows(tree, [&](auto rows) {
        constexpr int warps = rows / leaf_height<T>;
        launch(ctx, "factor_leaf_kernel", factor_leaf_kernel<T, warps, true>, tree.domains(), warps * 32,
               sizeof(ReflectShared<T, warps, leaf_height<T>>), geometry, V.data, V.ld, Tf.data, Tf.ld,
               static_cast<T*>(nullptr), Index(0));
    });
}

template <class T>
void reduce_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry,
                      MatrixView<const T, Cuda> V, MatrixView<T, Cuda> stack) {
    with_tile_rows(tree, [&](auto rows) {
        constexpr int warps = rows / leaf_height<T>;
        // only read: the kernel that keeps nothing writes to `stack` alone
        launch(ctx, "reduce_leaf", factor_leaf_kernel<T, warps, false>, tree.domains(), warps * 32,
               sizeof(ReflectShared<T, warps, leaf_height<T>>), geometry, const_cast<T*>(V.data), V.ld,
               static_cast<T*>(nullptr), Index(0), stack.data, stack.ld);
    });
}

template <class T>
void factor_nodes_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Index level,
                     MatrixView<T, Cuda> V, MatrixView<T, Cuda> Tf) {
    with_node_warps(geometry, [&](auto warps, auto rectangles) {
        launch(ctx, "factor_node_kernel", factor_node_kernel<T, warps, rectangles>, tree.nodes(level), warps * 32,
               sizeof(ReflectShared<T, warps, 32>), geometry, tree.stride(level), V.data, V.ld, Tf.data, Tf.ld);
    });
}

#define QUOIN_INSTANTIATE(T)                                    \
    template decltype(factor_leaves_of<T>) factor_leaves_of<T>; \
    template decltype(reduce_leaves_of<T>) reduce_leaves_of<T>; \
    template decltype(factor_nodes_of<T>) factor_nodes_of<T>;
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cuda
