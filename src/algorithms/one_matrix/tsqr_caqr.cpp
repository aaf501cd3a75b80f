// TSQR and CAQR (Demmel, Grigori, Hoemmen, Langou 2012; Anderson, Ballard, Demmel, Keutzer 2011): one loop over panels.

#include <algorithm>

#include "algorithms/one_matrix/tsqr_caqr.hpp"
#include "algorithms/shared/side_work.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

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
    const Index m = A.rows, n = A.cols, rows = Tuning<D>::batched_node_rows(m, scalar_kind<T>, leaf_rows),
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
    if (const Index leaf_rows = Tuning<D>::batched_leaf_rows(m, n, scalar_kind<T>); leaf_rows > 0)
        return static_cast<void>(tsqr_of_batches<T, D>(ctx, leaf_rows, A, true, A, R));
    ReflectorForest<T, D> tree;
    Plan by_tree = plan;
    by_tree.method = n <= Tuning<D>::one_tree_cols ? Method::TSQR : Method::CAQR;
    by_tree.rows = m;
    by_tree.cols = n;
    by_tree.panel_width = std::min(n, Tuning<D>::one_tree_cols);
    by_tree.choices = plan.tree();
    lay_out_panels(ctx, by_tree, tree);
    tree.A = Matrix<T, D>(ctx, m, n);
    copy<T>(ctx, A, tree.A.view());
    factor_trees(ctx, tree);
    copy_triangle<T>(ctx, tree.A.view().row_block({0, n}), R);
    form_q_in_place(ctx, tree.view());
    copy<T>(ctx, tree.A.view(), A);
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

#define QUOIN_INSTANTIATE(T, D)                                                   \
    template void factor_trees<T, D>(Context<D>&, ReflectorForest<T, D>&);        \
    template decltype(tsqr_of_batches<T, D>) tsqr_of_batches<T, D>;               \
    template decltype(orthonormalize_by_tree<T, D>) orthonormalize_by_tree<T, D>; \
    template void tsqr_r_only<T, D>(Context<D>&, const Plan&, InputView<T, D>, MatrixView<T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
