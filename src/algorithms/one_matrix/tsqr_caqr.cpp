// TSQR and CAQR (Demmel, Grigori, Hoemmen, Langou 2012; Anderson, Ballard, Demmel, Keutzer 2011): one loop over panels.

#include "algorithms/one_matrix/batch_tree.hpp"
#include "algorithms/one_matrix/tsqr_caqr.hpp"
#include "algorithms/shared/copies.hpp"
#include "devices.hpp"

namespace quoin {

template <class T, class D>
void orthonormalize_by_tree(Context<D>& ctx, const Plan& plan, MatrixView<T, D> A, MatrixView<T, D> R) {
    if constexpr (Tuning<D>::has_batched_trees) {
        BatchTree<T, D> tree;
        tree.factor(ctx, plan.tree(), A, true, true, R);
        tree.form_q(ctx, A);
    } else {
        Plan by_tree = plan;
        by_tree.method = Method::TSQR;
        by_tree.rows = A.rows;
        by_tree.cols = by_tree.panel_width = A.cols;
        by_tree.choices = plan.tree();
        ReflectorForest<T, D> tree;
        lay_out_panels(ctx, by_tree, tree);
        tree.A = copy_of<T, D>(ctx, A);
        factor_trees(ctx, tree);
        copy_triangle<T>(ctx, tree.A.view().row_block({0, A.cols}), R);
        form_q_in_place(ctx, tree.view());
        copy<T>(ctx, tree.A.view(), A);
    }
}

template <class T, class D>
void factor_trees(Context<D>& ctx, ReflectorForest<T, D>& forest) {
    for (std::size_t s = 0; s < forest.panels.size(); ++s) {
        throw_if_stopped(ctx);
        const Panel& panel = forest.panels[s];
        const PanelTree& tree = panel.tree;
        const auto A = forest.panel_a(panel);
        const auto Tf = forest.panel_t(panel);
        {
            const Span span(ctx, "panel", static_cast<Index>(s));
            factor_leaves<T>(ctx, tree, A, Tf);
            for (Index level = 0; level < tree.levels(); ++level) factor_nodes<T>(ctx, tree, level, A, Tf);
        }
        // A₂ := QᵀA₂
        const auto A2 = forest.A.view().block({panel.first, forest.A.rows()}, {panel.first + tree.width, forest.A.cols()});
        const Span span(ctx, "update", static_cast<Index>(s));
        apply_tree<T, D>(ctx, tree, Op::Transpose, A, Tf, A2);
    }
}

template <class T, class D>
bool tsqr_r_only(Context<D>& ctx, const Plan& plan, InputView<T, D> A, bool checked, MatrixView<T, D> R) {
    if (A.cols == 0) return true;
    const Span span(ctx, "R by TSQR");
    if constexpr (Tuning<D>::has_batched_trees) {
        return BatchTree<T, D>().factor(ctx, plan.tree(), A, checked, false, R);
    } else {
        const PanelTree tree = tree_of(plan, A.rows, A.cols);
        const Index n = A.cols, domains = tree.domains();
        // the domains' R factors, stacked, are themselves a panel: one leaf of n rows each
        Matrix<T, D> stack(ctx, domains * n, n), Tf(ctx, tree.inner_block, tree.t_cols());
        reduce_leaves<T>(ctx, tree, A, stack.view());
        PanelTree above = tree;
        above.rows = domains * n;
        above.leaf_rows = above.domain_rows = n;
        for (Index level = 0; level < above.levels(); ++level) {
            throw_if_stopped(ctx);
            factor_nodes<T>(ctx, above, level, stack.view(), Tf.view());
        }
        copy_triangle<T>(ctx, stack.view().row_block({0, n}), R);
        return true;
    }
}

#define QUOIN_INSTANTIATE(T, D)                                                   \
    template decltype(orthonormalize_by_tree<T, D>) orthonormalize_by_tree<T, D>; \
    template decltype(tsqr_r_only<T, D>) tsqr_r_only<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE
#define QUOIN_INSTANTIATE(T, D) template void factor_trees<T, D>(Context<D>&, ReflectorForest<T, D>&);
QUOIN_FOR_EACH_HOST_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
