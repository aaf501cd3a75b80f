// The reflectors of a tree on columns (trees/apply_leaf.cuh, trees/apply_node.cuh).

#include "cuda/trees/apply_leaf.cuh"
#include "cuda/trees/apply_node.cuh"
#include "cuda/trees/tree_launch.cuh"
#include "cuda/trees/tree_steps.hpp"

namespace quoin::cuda {

template <class T>
void apply_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Op op,
                     MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    with_tile_rows(tree, [&](auto rows) {
        const ColumnTiles columns(C.cols, apply_leaf_warps<rows, T>());
        // only read: the kernel that forms Q is another one
        launch(ctx, "apply_leaf_kernel",
               op == Op::Transpose ? apply_leaf_kernel<T, rows, true, false> : apply_leaf_kernel<T, rows, false, false>,
               columns.tiles * tree.domains(), (columns.warps + stage_warps) * 32,
               apply_leaf_bytes<rows, T>(columns.warps), geometry, columns.tiles, const_cast<T*>(V.data), V.ld, Tf.data,
               Tf.ld, C.data, C.ld, C.cols);
    });
}

template <class T>
void apply_nodes_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Index level, Op op,
                    MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    const Index strips = (C.cols + strip_cols - 1) / strip_cols;
    with_node_warps(geometry, [&](auto warps, auto rectangles) {
        launch(ctx, "apply_node_kernel",
               op == Op::Transpose ? apply_node_kernel<T, warps, rectangles, true>
                                   : apply_node_kernel<T, warps, rectangles, false>,
               strips * tree.nodes(level), warps * 32, apply_node_bytes(warps), geometry, tree.stride(level), strips,
               V.data, V.ld, Tf.data, Tf.ld, C.data, C.ld, C.cols);
    });
}

#define QUOIN_INSTANTIATE(T)                                  \
    template decltype(apply_leaves_of<T>) apply_leaves_of<T>; \
    template decltype(apply_nodes_of<T>) apply_nodes_of<T>;
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cuda
