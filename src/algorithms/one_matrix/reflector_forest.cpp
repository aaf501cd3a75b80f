// Applies the panels of a forest one after the other, and forms their Q.

#include "algorithms/one_matrix/reflector_forest.hpp"
#include "devices.hpp"

namespace quoin {

template <class T, class D>
void lay_out_panels(Context<D>& ctx, const Plan& plan, ReflectorForest<T, D>& forest) {
    forest.panels = panels_of(plan);
    if (forest.panels.empty()) return;
    const Panel& last = forest.panels.back();
    forest.Tf = Matrix<T, D>(ctx, last.tree.inner_block, last.t_col + last.tree.t_cols());
}

template <class T, class D>
void apply_tree(Context<D>& ctx, const PanelTree& tree, Op op, MatrixView<const T, D> V, MatrixView<const T, D> Tf,
                MatrixView<T, D> C, Arithmetic arithmetic) {
    if (C.cols == 0) return;
    if (tree.lapack_panel()) return apply_panel<T>(ctx, op, V, Tf, C, arithmetic);
    if constexpr (!Tuning<D>::has_batched_trees) {
        const auto apply_levels = [&] {
            const Span span(ctx, "tree update");
            const Index levels = tree.levels();
            for (Index l = 0; l < levels; ++l)
                apply_nodes<T>(ctx, tree, op == Op::Transpose ? l : levels - 1 - l, op, V, Tf, C);
        };
        // Qᵀ = Q_levelᵀ … Q_leavesᵀ: horizontal update, then tree update; Q in the opposite order
        if (op == Op::None) apply_levels();
        apply_leaves<T>(ctx, tree, op, V, Tf, C);
        if (op == Op::Transpose) apply_levels();
    }
}

template <class T, class D>
void apply_forest(Context<D>& ctx, ForestView<const T, D> forest, Op op, MatrixView<T, D> C, Arithmetic arithmetic) {
    const Index count = static_cast<Index>(forest.panels.size());
    if (count > 1 && forest.lapack_format()) return apply_panels<T, D>(ctx, op, forest.factors(), C, arithmetic);
    for (Index s = 0; s < count; ++s) {
        throw_if_stopped(ctx);
        // Qᵀ = … H₂ᵀ H₁ᵀ, Q = H₁ H₂ …
        const Panel& panel = forest.panels[op == Op::Transpose ? s : count - 1 - s];
        apply_tree<T, D>(ctx, panel.tree, op, forest.panel_a(panel), forest.panel_t(panel),
                         C.row_block({panel.first, C.rows}), arithmetic);
    }
}

template <class T, class D>
void form_q_in_place(Context<D>& ctx, ForestView<T, D> forest, Arithmetic arithmetic, MatrixView<const T, D> E) {
    const Span span(ctx, "form Q");
    const Index m = forest.A.rows, k = std::min(m, forest.A.cols);
    for (auto it = forest.panels.rbegin(); it != forest.panels.rend(); ++it) {
        throw_if_stopped(ctx);
        const Panel& panel = *it;
        const PanelTree& tree = panel.tree;
        const auto A = forest.panel_a(panel);
        const auto Tf = forest.panel_t(panel);
        // columns right of the panel: [0; Q₂₂] := H [0; Q₂₂];  the panel's own: H [I; 0]
        const auto C = forest.A.block({panel.first, m}, {panel.first + tree.width, k});
        set_identity<T>(ctx, C.cols, C.row_block({0, tree.width}));
        if (tree.lapack_panel() && !E.data) {
            apply_tree<T, D>(ctx, tree, Op::None, A, Tf, C, arithmetic);
            form_panel<T>(ctx, A, Tf);
            continue;
        }
        if constexpr (!Tuning<D>::has_batched_trees) {
            if (E.data) {
                store_triangle<T>(ctx, E, A.row_block({0, tree.width}));
            } else {
                set_root<T>(ctx, A);
            }
            for (Index l = tree.levels() - 1; l >= 0; --l) {
                // Q's blocks take the place of the level's V once C has been multiplied by them
                if (C.cols > 0) apply_nodes<T>(ctx, tree, l, Op::None, A, Tf, C);
                form_nodes<T>(ctx, tree, l, A, Tf);
            }
            form_leaves<T>(ctx, tree, A, Tf, C);
        }
    }
}

#define QUOIN_INSTANTIATE(T, D)                                                                              \
    template void lay_out_panels<T, D>(Context<D>&, const Plan&, ReflectorForest<T, D>&);                    \
    template decltype(apply_tree<T, D>) apply_tree<T, D>;                                                \
    template void apply_forest<T, D>(Context<D>&, ForestView<const T, D>, Op, MatrixView<T, D>, Arithmetic); \
    template void form_q_in_place<T, D>(Context<D>&, ForestView<T, D>, Arithmetic, MatrixView<const T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
