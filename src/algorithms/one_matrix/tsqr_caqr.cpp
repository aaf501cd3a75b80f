// TSQR and CAQR (Demmel, Grigori, Hoemmen, Langou 2012; Anderson, Ballard, Demmel, Keutzer 2011): one loop over panels.

#include <algorithm>

#include "algorithms/one_matrix/factorization.hpp"
#include "algorithms/one_matrix/solver_steps.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// Makes the tree update: C := op(Q_levels) C.
template <class T, class D>
void apply_levels(Context<D>& ctx, const PanelTree& tree, Op op, MatrixView<const T, D> V, MatrixView<const T, D> Tf,
                  MatrixView<T, D> C) {
    if (C.cols == 0) return;
    const Span span(ctx, "tree update");
    const Index levels = tree.levels();
    for (Index l = 0; l < levels; ++l) {
        apply_nodes<T>(ctx, tree, op == Op::Transpose ? l : levels - 1 - l, op, V, Tf, C);
    }
}

/// C := op(Q_panel) C. C has the panel's rows.
template <class T, class D>
void tsqr_apply(Context<D>& ctx, const PanelTree& tree, Op op, MatrixView<const T, D> V, MatrixView<const T, D> Tf,
                MatrixView<T, D> C, Arithmetic arithmetic = Arithmetic::Native) {
    if (C.cols == 0) return;
    if (tree.lapack_panel()) return apply_panel<T>(ctx, op, V, Tf, C, arithmetic);
    // Qᵀ = Q_levelᵀ … Q_leavesᵀ: horizontal update, then tree update; Q in the opposite order
    if (op == Op::None) apply_levels<T, D>(ctx, tree, op, V, Tf, C);
    apply_leaves<T>(ctx, tree, op, V, Tf, C);
    if (op == Op::Transpose) apply_levels<T, D>(ctx, tree, op, V, Tf, C);
}

/// Whether all columns are finite and in range. Waits.
template <class T, class D>
bool is_in_range(Context<D>& ctx, MatrixView<const T, D> A) {
    Matrix<int, D> exponents(ctx, A.cols, 1);
    Matrix<Scan, D> found(ctx, 1, 1);
    scan<T>(ctx, A, Scalar<T>::safe_exponent, exponents.view(), found.view());
    const Scan seen = read_scan(ctx, std::as_const(found).view());
    return !seen.scaled && seen.bad_row < 0;
}

/// Factors the levels of a tree as batches. Rows of A belong together `block` by block: the blocks are triangles R_b of
/// the level below. Unless `checked`, returns false, with Q unchanged, if columns are not in range. That is read from
/// the triangles, which have the norms of A's columns.
template <class T, class D>
bool factor_levels(Context<D>& ctx, Index leaf_rows, Index block, InputView<T, D> A, bool checked, MatrixView<T, D> Q,
                   MatrixView<T, D> R) {
    throw_if_stopped(ctx);
    const Index m = A.rows, n = A.cols, rows = Tuning<D>::batched_node_rows(m, sizeof(T), leaf_rows),
                each = rows < m ? rows / block * block : m, count = m / each;
    const Range rest{count * each, m};
    const Members nodes{{}, count};
    const auto batch_of = [&]<class U>(MatrixView<U, D> X, Index stride) {
        return BatchView<U, D>(X.data, stride, n, X.ld, stride, count);
    };
    SmallBatch<T, D> batch(ctx, each, n, count);
    batch.factor(
        ctx,
        A.by_rows ? BatchView<const T, D>(A.data, each, n, A.ld, 1, each * A.ld, count) : batch_of(A.stored(), each),
        nodes, false);
    if (each == m) {
        batch.unpack(ctx, Factor::R, nodes, batch_of(R, n));
        if (!checked && !is_in_range<T, D>(ctx, R)) return false;
        if (Q.data) batch.form_q(ctx, nodes, batch_of(Q, each));
        return true;
    }
    // [R_1; R_2; …; A's last rows] = S R
    Matrix<T, D> stack = Matrix<T, D>::aligned(ctx, count * n + rest.size(), n);
    const auto S = stack.view();
    const Range triangles{0, count * n}, others{count * n, S.rows};
    batch.unpack(ctx, Factor::R, nodes, batch_of(S, n));
    load<T>(ctx, A.row_block(rest), S.row_block(others));
    if (!checked && !is_in_range<T, D>(ctx, S)) return false;
    factor_levels<T, D>(ctx, leaf_rows, n, S, true, Q.data ? S : MatrixView<T, D>(), R);
    if (!Q.data) return true;
    // Q_b := Q_b [S_b; 0]: row i of a triangle R_b is zero left of column i, in V and so in S too
    batch.form_q(ctx, nodes, batch_of(MatrixView<const T, D>(S.row_block(triangles)), n), batch_of(Q, each));
    copy<T>(ctx, S.row_block(others), Q.row_block(rest));
    return true;
}

}  // namespace

template <class T, class D>
bool tsqr_of_batches(Context<D>& ctx, Index leaf_rows, InputView<T, D> A, bool checked, MatrixView<T, D> Q,
                     MatrixView<T, D> R) {
    const Span span(ctx, "tree of batches");
    if constexpr (Tuning<D>::has_batched_trees) return factor_levels<T, D>(ctx, leaf_rows, 1, A, checked, Q, R);
    return false;
}

template <class T, class D>
void orthonormalize_by_tree(Context<D>& ctx, const Plan& plan, MatrixView<T, D> A, MatrixView<T, D> R) {
    const Index m = A.rows, n = A.cols;
    if (const Index leaf_rows = Tuning<D>::batched_leaf_rows(m, n, sizeof(T)); leaf_rows > 0)
        return static_cast<void>(tsqr_of_batches<T, D>(ctx, leaf_rows, A, true, A, R));
    ReflectorForest<T, D> tree;
    Plan by_tree = plan;
    by_tree.method = n <= Tuning<D>::one_tree_cols ? Method::TSQR : Method::CAQR;
    by_tree.rows = m;
    by_tree.cols = n;
    by_tree.panel_width = std::min(n, Tuning<D>::one_tree_cols);
    by_tree.last_rows = by_tree.last_width = 0;
    lay_out_panels(ctx, by_tree, tree);
    tree.A = Matrix<T, D>(ctx, m, n);
    copy<T>(ctx, A, tree.A.view());
    factor_trees(ctx, tree);
    copy_triangle<T>(ctx, tree.A.view().row_block({0, n}), R);
    form_q_in_place(ctx, tree.view());
    copy<T>(ctx, tree.A.view(), A);
}

template <class T, class D>
void lay_out_panels(Context<D>& ctx, const Plan& plan, ReflectorForest<T, D>& forest) {
    forest.panels = panels_of(plan);
    if (forest.panels.empty()) return;
    const Panel& last = forest.panels.back();
    forest.Tf = Matrix<T, D>(ctx, last.tree.inner_block, last.t_col + last.tree.t_cols());
}

template <class T, class D>
void factor_trees(Context<D>& ctx, ReflectorForest<T, D>& forest) {
    SideWork side(ctx);
    const Index count = static_cast<Index>(forest.panels.size());
    Context<D>* critical = &ctx;
    for (Index s = 0; s < count; ++s) {
        throw_if_stopped(ctx);
        const Panel& panel = forest.panels[s];
        const auto A = forest.panel_a(panel);
        const auto Tf = forest.panel_t(panel);
        const Index levels = panel.tree.levels();
        // A₂ := QᵀA₂
        const auto A2 =
            forest.A.view().block({panel.first, forest.A.rows()}, {panel.first + panel.tree.width, forest.A.cols()});
        {
            const Span span(*critical, "panel", s);
            factor_leaves<T>(*critical, panel.tree, A, Tf);
        }
        side.join();
        const Span span(ctx, A2.cols == 0 ? "panel" : "update", s);
        if (A2.cols == 0) {
            for (Index level = 0; level < levels; ++level) factor_nodes<T>(ctx, panel.tree, level, A, Tf);
        } else if (panel.tree.lapack_panel()) {
            apply_panel<T>(ctx, Op::Transpose, A, Tf, A2);
            critical = &ctx;
        } else {
            factor_nodes_and_apply_leaves<T>(ctx, panel.tree, A, Tf, A2);
            // the tree update of the next panel, whose leaves are next, runs ahead of the update of the columns right
            // of it
            const Index next = !side.is_apart() ? A2.cols : s + 1 < count ? forest.panels[s + 1].tree.width : 0;
            critical = &side.fork();
            apply_levels<T, D>(*critical, panel.tree, Op::Transpose, A, Tf, A2.col_block({0, next}));
            apply_levels<T, D>(ctx, panel.tree, Op::Transpose, A, Tf, A2.col_block({next, A2.cols}));
        }
    }
}

template <class T, class D>
void tsqr_r_only(Context<D>& ctx, const Plan& plan, InputView<T, D> A, MatrixView<T, D> R) {
    if (A.cols == 0) return;
    const Span span(ctx, "R by TSQR");
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
}

template <class T, class D>
void apply_forest(Context<D>& ctx, ForestView<const T, D> forest, Op op, MatrixView<T, D> C, Arithmetic arithmetic) {
    const Index count = static_cast<Index>(forest.panels.size());
    if (count > 1 && forest.lapack_format()) return apply_panels<T, D>(ctx, op, forest.factors(), C, arithmetic);
    for (Index s = 0; s < count; ++s) {
        throw_if_stopped(ctx);
        // Qᵀ = … H₂ᵀ H₁ᵀ, Q = H₁ H₂ …
        const Panel& panel = forest.panels[op == Op::Transpose ? s : count - 1 - s];
        tsqr_apply<T, D>(ctx, panel.tree, op, forest.panel_a(panel), forest.panel_t(panel),
                         C.row_block({panel.first, C.rows}), arithmetic);
    }
}

template <class T, class D>
void form_q_in_place(Context<D>& ctx, ForestView<T, D> forest, Arithmetic arithmetic, MatrixView<const T, D> E) {
    const Span span(ctx, "form Q");
    const Index m = forest.A.rows, k = std::min(m, forest.A.cols);
    SideWork side(ctx);
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
            tsqr_apply<T, D>(ctx, tree, Op::None, A, Tf, C, arithmetic);
            form_panel<T>(ctx, A, Tf);
            continue;
        }
        if (E.data) {
            store_triangle<T>(side.fork(), E, A.row_block({0, tree.width}));
        } else {
            set_root<T>(side.fork(), A);
        }
        for (Index l = tree.levels() - 1; l >= 0; --l) {
            // Q's blocks take the place of the level's V once C has been multiplied by them
            if (C.cols > 0) apply_nodes<T>(ctx, tree, l, Op::None, A, Tf, C);
            form_nodes<T>(side.fork(), tree, l, A, Tf);
        }
        side.join();
        form_leaves<T>(ctx, tree, A, Tf, C);
    }
}

#define QUOIN_INSTANTIATE(T, D)                                                                              \
    template void lay_out_panels<T, D>(Context<D>&, const Plan&, ReflectorForest<T, D>&);                    \
    template void factor_trees<T, D>(Context<D>&, ReflectorForest<T, D>&);                                   \
    template decltype(tsqr_of_batches<T, D>) tsqr_of_batches<T, D>;                                          \
    template decltype(orthonormalize_by_tree<T, D>) orthonormalize_by_tree<T, D>;                            \
    template void tsqr_r_only<T, D>(Context<D>&, const Plan&, InputView<T, D>, MatrixView<T, D>);            \
    template void apply_forest<T, D>(Context<D>&, ForestView<const T, D>, Op, MatrixView<T, D>, Arithmetic); \
    template void form_q_in_place<T, D>(Context<D>&, ForestView<T, D>, Arithmetic, MatrixView<const T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
