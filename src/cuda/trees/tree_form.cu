// The thin Q of a tree in place of its reflectors (trees/form_q.cuh, trees/apply_leaf.cuh).

#include "cuda/trees/apply_leaf.cuh"
#include "cuda/trees/form_q.cuh"
#include "cuda/trees/tree_launch.cuh"
#include "cuda/trees/tree_steps.hpp"

namespace quoin::cuda {

template <class T>
void form_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, MatrixView<T, Cuda> V,
                    MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    with_tile_rows(tree, [&](auto rows) {
        // doubles in tiles of 256 rows leave no room for a strip of C
        constexpr int most = apply_and_form_warps<rows, T>();
        if (C.cols > 0 && C.cols <= most * strip_cols) {
            const ColumnTiles columns(C.cols, std::max(most, 1));
            launch(ctx, "apply_leaf_kernel", apply_leaf_kernel<T, rows, false, true>, tree.domains(),
                   (columns.warps + form_strips + stage_warps) * 32, apply_leaf_bytes<rows, T>(columns.warps), geometry,
                   columns.tiles, V.data, V.ld, Tf.data, Tf.ld, C.data, C.ld, C.cols);
            return;
        }
        apply_leaves_of<T>(ctx, tree, geometry, Op::None, V, Tf, C);
        launch(ctx, "form_leaf_kernel", form_leaf_kernel<T, rows>, tree.domains(), form_warps * 32,
               reflector_doubles<rows> * sizeof(double), geometry, V.data, V.ld, Tf.data, Tf.ld);
    });
}

template <class T>
void form_nodes_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Index level,
                   MatrixView<T, Cuda> V, MatrixView<const T, Cuda> Tf) {
    with_node_warps(geometry, [&](auto warps, auto rectangles) {
        launch(ctx, "form_node_kernel", form_node_kernel<T, warps, rectangles>, tree.nodes(level), warps * 32,
               form_node_bytes(warps), geometry, tree.stride(level), V.data, V.ld, Tf.data, Tf.ld);
    });
}

#define QUOIN_INSTANTIATE(T)                                \
    template decltype(form_leaves_of<T>) form_leaves_of<T>; \
    template decltype(form_nodes_of<T>) form_nodes_of<T>;
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin::cuda
