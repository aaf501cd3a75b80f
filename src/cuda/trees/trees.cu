// The tree primitives on a GPU: one launch a tree level and 32 columns. The mathematics stands in kernels/.

#include <algorithm>
#include <string>

#include "cuda/elements/elementwise.cuh"
#include "cuda/kernel_choice.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/state.hpp"
#include "cuda/trees/tree_steps.hpp"

namespace quoin {

namespace {

using namespace cuda;

/// Throws unless the kernels' tiles can hold the tree.
void check_tree(const PanelTree& tree) {
    const auto refuse = [](const char* what, Index value, Index most) {
        throw InvalidArgument(std::string("on a GPU ") + what + " of a tree may be at most " + std::to_string(most) +
                              ", and is " + std::to_string(value));
    };
    if (tree.width > max_tree_width) refuse("the panel width", tree.width, max_tree_width);
    const Index leaf = std::min(tree.leaf_rows, tree.rows);
    if (leaf > max_leaf_rows) refuse("the rows of a leaf", leaf, max_leaf_rows);
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

/// Calls `work(geometry, own, right)` for every sub-panel from the left, or from the right: its columns of the panel
/// and those right of it.
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

/// Members that the nodes of one level absorb.
Index members(const PanelTree& tree, Index level) {
    const Index stride = tree.stride(level);
    return (tree.domains() + stride - 1) / stride - tree.nodes(level);
}

}  // namespace

template <class T, class D>
void factor_leaves(Context<D>& ctx, const PanelTree& tree, View<T, D> A, View<T, D> Tf) {
    for_each_sub_panel(tree, true, [&](const TreeGeometry& geometry, Range own, Range right) {
        const MatrixView<T, Cuda> V = A.col_block(own);
        factor_leaves_of<T>(ctx, tree, geometry, V, Tf);
        apply_leaves_of<T>(ctx, tree, geometry, Op::Transpose, V, Tf, A.col_block(right));
    });
    ctx.state().add_flops(2.0 * tree.rows * tree.width * tree.width);
}

template <class T, class D>
void reduce_leaves(Context<D>& ctx, const PanelTree& tree, Input<T, D> input, View<T, D> stack) {
    const MatrixView<const T, D> A = input.stored();
    check_tree(tree);
    if (tree.width > tile_width) {
        // sub-panels change the columns on their right: on a copy
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
    reduce_leaves_of<T>(ctx, tree, TreeGeometry(tree, 0), A, stack);
    ctx.state().add_flops(2.0 * tree.rows * tree.width * tree.width);
}

template <class T, class D>
void factor_nodes(Context<D>& ctx, const PanelTree& tree, Index level, View<T, D> A, View<T, D> Tf) {
    for_each_sub_panel(tree, true, [&](const TreeGeometry& geometry, Range own, Range right) {
        const MatrixView<T, Cuda> V = A.col_block(own);
        factor_nodes_of<T>(ctx, tree, geometry, level, V, Tf);
        apply_nodes_of<T>(ctx, tree, geometry, level, Op::Transpose, V, Tf, A.col_block(right));
    });
    ctx.state().add_flops(2.0 / 3.0 * members(tree, level) * tree.width * tree.width * tree.width);
}

template <class T, class D>
void apply_leaves(Context<D>& ctx, const PanelTree& tree, Op op, View<const T, D> A, View<const T, D> Tf,
                  View<T, D> C) {
    for_each_sub_panel(tree, op == Op::Transpose, [&](const TreeGeometry& geometry, Range own, Range) {
        apply_leaves_of<T>(ctx, tree, geometry, op, A.col_block(own), Tf, C);
    });
    ctx.state().add_flops(4.0 * tree.rows * tree.width * C.cols);
}

template <class T, class D>
void factor_nodes_and_apply_leaves(Context<D>& ctx, const PanelTree& tree, View<T, D> A, View<T, D> Tf, View<T, D> C) {
    // the nodes are few and wait for latency: they take turns with the blocks of the leaves
    auto& side = ctx.state().side(Trace::Row::SideStream);
    side.follow(ctx.stream());
    for (Index level = 0; level < tree.levels(); ++level) factor_nodes<T>(side, tree, level, A, Tf);
    apply_leaves<T>(ctx, tree, Op::Transpose, A, Tf, C);
    ctx.follow(side.stream());
}

template <class T, class D>
void apply_nodes(Context<D>& ctx, const PanelTree& tree, Index level, Op op, View<const T, D> A, View<const T, D> Tf,
                 View<T, D> C) {
    for_each_sub_panel(tree, op == Op::Transpose, [&](const TreeGeometry& geometry, Range own, Range) {
        apply_nodes_of<T>(ctx, tree, geometry, level, op, A.col_block(own), Tf, C);
    });
    ctx.state().add_flops(2.0 * members(tree, level) * tree.width * tree.width * C.cols);
}

template <class T, class D>
void form_nodes(Context<D>& ctx, const PanelTree& tree, Index level, View<T, D> A, View<const T, D> Tf) {
    for_each_sub_panel(tree, false, [&](const TreeGeometry& geometry, Range own, Range right) {
        const MatrixView<T, Cuda> V = A.col_block(own);
        // [E; Q_right] := H [E; Q_right] before Q takes the place of V
        apply_nodes_of<T>(ctx, tree, geometry, level, Op::None, V, Tf, A.col_block(right));
        form_nodes_of<T>(ctx, tree, geometry, level, V, Tf);
    });
    ctx.state().add_flops(2.0 / 3.0 * members(tree, level) * tree.width * tree.width * tree.width);
}

template <class T, class D>
void form_leaves(Context<D>& ctx, const PanelTree& tree, View<T, D> A, View<const T, D> Tf, View<T, D> C) {
    for_each_sub_panel(tree, false, [&](const TreeGeometry& geometry, Range own, Range right) {
        const MatrixView<T, Cuda> V = A.col_block(own), Q_right = A.col_block(right);
        if (Q_right.cols > 0) apply_leaves_of<T>(ctx, tree, geometry, Op::None, V, Tf, C);
        // the columns right of the sub-panel, or C, before Q takes the place of V
        form_leaves_of<T>(ctx, tree, geometry, V, Tf, Q_right.cols > 0 ? Q_right : C);
    });
    ctx.state().add_flops(2.0 * tree.rows * tree.width * tree.width + 4.0 * tree.rows * tree.width * C.cols);
}

template <class T, class D>
void set_root(Context<D>& ctx, View<T, D> A) {
    for_each_element(ctx, std::min(A.rows, A.cols), A.cols, [=] __device__(Index i, Index j) {
        if (i <= j) A.data[i + j * A.ld] = i == j ? T(1) : T(0);
    });
}

QUOIN_IMPLEMENT(Cuda, factor_leaves, reduce_leaves, factor_nodes, apply_leaves, factor_nodes_and_apply_leaves,
                apply_nodes, form_nodes, form_leaves, set_root)

}  // namespace quoin
