// The tree primitives on a GPU: one launch a tree level and 32 columns. The mathematics stands in kernels/.

#include <algorithm>
#include <string>
#include <type_traits>

#include "cuda/elementwise.cuh"
#include "cuda/kernels/apply_leaf.cuh"
#include "cuda/kernels/apply_node.cuh"
#include "cuda/kernels/factor_leaf.cuh"
#include "cuda/kernels/factor_node.cuh"
#include "cuda/kernels/form_q.cuh"
#include "cuda/launch.hpp"
#include "cuda/primitives.hpp"
#include "cuda/state.hpp"

namespace quoin {

namespace {

using namespace cuda;

/// No blocks, no launch.
template <class... Parameters, class... Arguments>
void launch(Context<Cuda>& ctx, const char* name, void (*kernel)(Parameters...), Index blocks, int threads,
            std::size_t shared, const Arguments&... arguments) {
    if (blocks == 0) return;
    const LaunchShape shape{static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared};
    check(cuda::launch(kernel, shape, ctx.stream(), arguments...), name);
}

/// What the kernels' tiles can hold.
void check_tree(const PanelTree& tree) {
    const auto refuse = [](const char* what, Index value, Index most) {
        throw InvalidArgument(std::string("on a GPU ") + what + " of a tree may be at most " + std::to_string(most) +
                              ", and is " + std::to_string(value));
    };
    if (tree.width > most_tree_width) refuse("the panel width", tree.width, most_tree_width);
    const Index leaf = std::min(tree.leaf_rows, tree.rows);
    if (leaf > most_leaf_rows) refuse("the rows of a leaf", leaf, most_leaf_rows);
    const Index sub_panel = std::min<Index>(tree.width, tile_width);
    if (tree.inner_block < sub_panel) {
        throw InvalidArgument("on a GPU one T serves " + std::to_string(sub_panel) +
                              " columns of a leaf: inner_block must be at least that, and is " +
                              std::to_string(tree.inner_block));
    }
    if (tree.leaf_rows < sub_panel) {
        throw InvalidArgument("on a GPU a leaf needs at least " + std::to_string(sub_panel) +
                              " rows, and leaf_rows is " + std::to_string(tree.leaf_rows));
    }
}

/// Calls `work` with the constant among `values`, ascending, that is the first to reach `wanted`, or else the last.
template <int... values, class Work>
void with_least(Index wanted, Work work) {
    constexpr int last = std::max({values...});
    bool found = false;
    const auto try_one = [&](auto constant) {
        if (found || (wanted > constant && constant != last)) return;
        found = true;
        work(constant);
    };
    (try_one(std::integral_constant<int, values>()), ...);
}
/// The rows of the tiles that hold the tree's leaves.
template <class Work>
void with_tile_rows(const PanelTree& tree, Work work) {
    with_least<64, 128, most_leaf_rows>(std::min(tree.leaf_rows, tree.rows), work);
}
/// Calls `work` with the warps of a node, one for each tile of its members or as many as a block can have, and whether there are
/// rectangles among the tiles.
template <class Work>
void with_node_warps(const TreeGeometry& geometry, Work work) {
    const Index tiles = (geometry.fan_in - 1) * geometry.member_tiles();
    if (geometry.member_tiles() == 1) {
        with_least<1, 3, 9, most_node_warps>(tiles, [&](auto warps) { work(warps, std::false_type()); });
    } else {
        with_least<3, 9, most_node_warps>(tiles, [&](auto warps) { work(warps, std::true_type()); });
    }
}

/// Calls `work(geometry, own, right)` for every sub-panel from the left, or from the right: its columns of the panel and those
/// right of it.
template <class Work>
void for_each_sub_panel(const PanelTree& tree, bool from_left, Work work) {
    check_tree(tree);
    const Index count = (tree.width + tile_width - 1) / tile_width;
    for (Index i = 0; i < count; ++i) {
        const TreeGeometry geometry(tree, (from_left ? i : count - 1 - i) * tile_width);
        const Range own{geometry.first, geometry.first + geometry.width};
        work(geometry, own, Range{own.end, tree.width});
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

/// Members that the nodes of one level absorb.
Index members(const PanelTree& tree, Index level) {
    const Index stride = tree.stride(level);
    return (tree.domains() + stride - 1) / stride - tree.nodes(level);
}

/// C := op(Q) C for the leaves' reflectors of one sub-panel, V its columns of the panel.
template <class T>
void apply_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Op op,
                     MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    with_tile_rows(tree, [&](auto rows) {
        const ColumnTiles columns(C.cols, apply_leaf_warps<rows, T>());
        // only read: the kernel that forms Q is another one
        launch(ctx, "apply_leaf",
               op == Op::Transpose ? apply_leaf<T, rows, true, false> : apply_leaf<T, rows, false, false>,
               columns.tiles * tree.domains(), (columns.warps + stage_warps) * 32,
               apply_leaf_bytes<rows, T>(columns.warps), geometry, columns.tiles, const_cast<T*>(V.data), V.ld, Tf.data,
               Tf.ld, C.data, C.ld, C.cols);
    });
}

/// C := Q C for them, and then the sub-panel's columns of Q in place of V: in one kernel where C is narrow.
template <class T>
void form_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, MatrixView<T, Cuda> V,
                    MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    with_tile_rows(tree, [&](auto rows) {
        // doubles in tiles of 256 rows leave no room for a strip of C beside
        constexpr int most = apply_and_form_warps<rows, T>();
        if (C.cols > 0 && C.cols <= most * strip_cols) {
            const ColumnTiles columns(C.cols, std::max(most, 1));
            launch(ctx, "apply_leaf", apply_leaf<T, rows, false, true>, tree.domains(),
                   (columns.warps + form_strips + stage_warps) * 32, apply_leaf_bytes<rows, T>(columns.warps), geometry,
                   columns.tiles, V.data, V.ld, Tf.data, Tf.ld, C.data, C.ld, C.cols);
            return;
        }
        apply_leaves_of<T>(ctx, tree, geometry, Op::None, V, Tf, C);
        launch(ctx, "form_leaf", form_leaf<T, rows>, tree.domains(), form_warps * 32,
               reflector_doubles<rows> * sizeof(double), geometry, V.data, V.ld, Tf.data, Tf.ld);
    });
}

/// C := op(Q) C for the nodes' reflectors of one sub-panel and level.
template <class T>
void apply_nodes_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Index level, Op op,
                    MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    const Index strips = (C.cols + strip_cols - 1) / strip_cols;
    with_node_warps(geometry, [&](auto warps, auto rectangles) {
        launch(ctx, "apply_node",
               op == Op::Transpose ? apply_node<T, warps, rectangles, true> : apply_node<T, warps, rectangles, false>,
               strips * tree.nodes(level), warps * 32, apply_node_bytes(warps), geometry, tree.stride(level), strips,
               V.data, V.ld, Tf.data, Tf.ld, C.data, C.ld, C.cols);
    });
}

}  // namespace

template <class T>
void factor_leaves(Context<Cuda>& ctx, const PanelTree& tree, MatrixView<T, Cuda> A, MatrixView<T, Cuda> Tf) {
    for_each_sub_panel(tree, true, [&](const TreeGeometry& geometry, Range own, Range right) {
        const MatrixView<T, Cuda> V = A.col_block(own);
        with_tile_rows(tree, [&](auto rows) {
            constexpr int warps = rows / leaf_height<T>;
            launch(ctx, "factor_leaf", factor_leaf<T, warps, true>, tree.domains(), warps * 32,
                   sizeof(ReflectShared<T, warps, leaf_height<T>>), geometry, V.data, V.ld, Tf.data, Tf.ld,
                   static_cast<T*>(nullptr), Index(0));
        });
        apply_leaves_of<T>(ctx, tree, geometry, Op::Transpose, V, Tf, A.col_block(right));
    });
    ctx.state().add_flops(2.0 * tree.rows * tree.width * tree.width);
}

template <class T>
void reduce_leaves(Context<Cuda>& ctx, const PanelTree& tree, MatrixView<const T, Cuda> A, MatrixView<T, Cuda> stack) {
    check_tree(tree);
    if (tree.width > tile_width) {
        // sub-panels change what is right of them: on a copy
        Arena::Frame frame(ctx);
        const MatrixView<T, Cuda> W = frame.matrix<T>(tree.rows, tree.width),
                                  Tf = frame.matrix<T>(tree.inner_block, tree.t_cols());
        copy<T>(ctx, A, W);
        factor_leaves<T>(ctx, tree, W, Tf);
        for_each_element(ctx, stack.rows, stack.cols,
                         [W, stack, n = tree.width, domain_rows = tree.domain_rows] __device__(Index i, Index j) {
                             const Index d = i / n, r = i % n;
                             stack.data[i + j * stack.ld] = r <= j ? W.data[d * domain_rows + r + j * W.ld] : T(0);
                         });
        return;
    }
    with_tile_rows(tree, [&](auto rows) {
        constexpr int warps = rows / leaf_height<T>;
        // only read: the kernel that keeps nothing writes to `stack` alone
        launch(ctx, "reduce_leaf", factor_leaf<T, warps, false>, tree.domains(), warps * 32,
               sizeof(ReflectShared<T, warps, leaf_height<T>>), TreeGeometry(tree, 0), const_cast<T*>(A.data), A.ld,
               static_cast<T*>(nullptr), Index(0), stack.data, stack.ld);
    });
    ctx.state().add_flops(2.0 * tree.rows * tree.width * tree.width);
}

template <class T>
void factor_nodes(Context<Cuda>& ctx, const PanelTree& tree, Index level, MatrixView<T, Cuda> A,
                  MatrixView<T, Cuda> Tf) {
    for_each_sub_panel(tree, true, [&](const TreeGeometry& geometry, Range own, Range right) {
        const MatrixView<T, Cuda> V = A.col_block(own);
        with_node_warps(geometry, [&](auto warps, auto rectangles) {
            launch(ctx, "factor_node", factor_node<T, warps, rectangles>, tree.nodes(level), warps * 32,
                   sizeof(ReflectShared<T, warps, 32>), geometry, tree.stride(level), V.data, V.ld, Tf.data, Tf.ld);
        });
        apply_nodes_of<T>(ctx, tree, geometry, level, Op::Transpose, V, Tf, A.col_block(right));
    });
    ctx.state().add_flops(2.0 / 3.0 * members(tree, level) * tree.width * tree.width * tree.width);
}

template <class T>
void apply_leaves(Context<Cuda>& ctx, const PanelTree& tree, Op op, MatrixView<const T, Cuda> A,
                  MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    for_each_sub_panel(tree, op == Op::Transpose, [&](const TreeGeometry& geometry, Range own, Range) {
        apply_leaves_of<T>(ctx, tree, geometry, op, A.col_block(own), Tf, C);
    });
    ctx.state().add_flops(4.0 * tree.rows * tree.width * C.cols);
}

template <class T>
void factor_nodes_and_apply_leaves(Context<Cuda>& ctx, const PanelTree& tree, MatrixView<T, Cuda> A,
                                   MatrixView<T, Cuda> Tf, MatrixView<T, Cuda> C) {
    // the nodes are few and wait for latency: they take turns with the blocks of the leaves
    auto& side = ctx.state().beside(Trace::Row::Beside);
    side.follow(ctx.stream());
    for (Index level = 0; level < tree.levels(); ++level) factor_nodes<T>(side, tree, level, A, Tf);
    apply_leaves<T>(ctx, tree, Op::Transpose, A, Tf, C);
    ctx.follow(side.stream());
}

template <class T>
void apply_nodes(Context<Cuda>& ctx, const PanelTree& tree, Index level, Op op, MatrixView<const T, Cuda> A,
                 MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C) {
    for_each_sub_panel(tree, op == Op::Transpose, [&](const TreeGeometry& geometry, Range own, Range) {
        apply_nodes_of<T>(ctx, tree, geometry, level, op, A.col_block(own), Tf, C);
    });
    ctx.state().add_flops(2.0 * members(tree, level) * tree.width * tree.width * C.cols);
}

template <class T>
void form_nodes(Context<Cuda>& ctx, const PanelTree& tree, Index level, MatrixView<T, Cuda> A,
                MatrixView<const T, Cuda> Tf) {
    for_each_sub_panel(tree, false, [&](const TreeGeometry& geometry, Range own, Range right) {
        const MatrixView<T, Cuda> V = A.col_block(own);
        // [E; Q_right] := H [E; Q_right] before Q takes the place of V
        apply_nodes_of<T>(ctx, tree, geometry, level, Op::None, V, Tf, A.col_block(right));
        with_node_warps(geometry, [&](auto warps, auto rectangles) {
            launch(ctx, "form_node", form_node<T, warps, rectangles>, tree.nodes(level), warps * 32,
                   form_node_bytes(warps), geometry, tree.stride(level), V.data, V.ld, Tf.data, Tf.ld);
        });
    });
    ctx.state().add_flops(2.0 / 3.0 * members(tree, level) * tree.width * tree.width * tree.width);
}

template <class T>
void form_leaves(Context<Cuda>& ctx, const PanelTree& tree, MatrixView<T, Cuda> A, MatrixView<const T, Cuda> Tf,
                 MatrixView<T, Cuda> C) {
    for_each_sub_panel(tree, false, [&](const TreeGeometry& geometry, Range own, Range right) {
        const MatrixView<T, Cuda> V = A.col_block(own), Q_right = A.col_block(right);
        if (Q_right.cols > 0) apply_leaves_of<T>(ctx, tree, geometry, Op::None, V, Tf, C);
        // the columns right of the sub-panel, or those of C, before Q takes the place of V
        form_leaves_of<T>(ctx, tree, geometry, V, Tf, Q_right.cols > 0 ? Q_right : C);
    });
    ctx.state().add_flops(2.0 * tree.rows * tree.width * tree.width + 4.0 * tree.rows * tree.width * C.cols);
}

template <class T>
void set_root(Context<Cuda>& ctx, MatrixView<T, Cuda> A) {
    launch(ctx, "set_upper_identity", set_upper_identity<T>, std::min<Index>(A.cols, 65535), 128, 0, A.data, A.ld,
           A.rows, A.cols);
}

#define QUOIN_INSTANTIATE(T)                                                                                          \
    template void factor_leaves<T>(Context<Cuda>&, const PanelTree&, MatrixView<T, Cuda>, MatrixView<T, Cuda>);       \
    template void reduce_leaves<T>(Context<Cuda>&, const PanelTree&, MatrixView<const T, Cuda>, MatrixView<T, Cuda>); \
    template void factor_nodes<T>(Context<Cuda>&, const PanelTree&, Index, MatrixView<T, Cuda>, MatrixView<T, Cuda>); \
    template void apply_leaves<T>(Context<Cuda>&, const PanelTree&, Op, MatrixView<const T, Cuda>,                    \
                                  MatrixView<const T, Cuda>, MatrixView<T, Cuda>);                                    \
    template void factor_nodes_and_apply_leaves<T>(Context<Cuda>&, const PanelTree&, MatrixView<T, Cuda>,             \
                                                   MatrixView<T, Cuda>, MatrixView<T, Cuda>);                         \
    template void apply_nodes<T>(Context<Cuda>&, const PanelTree&, Index, Op, MatrixView<const T, Cuda>,              \
                                 MatrixView<const T, Cuda>, MatrixView<T, Cuda>);                                     \
    template void form_nodes<T>(Context<Cuda>&, const PanelTree&, Index, MatrixView<T, Cuda>,                         \
                                MatrixView<const T, Cuda>);                                                           \
    template void form_leaves<T>(Context<Cuda>&, const PanelTree&, MatrixView<T, Cuda>, MatrixView<const T, Cuda>,    \
                                 MatrixView<T, Cuda>);                                                                \
    template void set_root<T>(Context<Cuda>&, MatrixView<T, Cuda>);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
