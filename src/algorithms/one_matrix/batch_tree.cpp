// Factors the levels of trees of batches, and multiplies by their Q.

#include "algorithms/one_matrix/batch_tree.hpp"
#include "algorithms/shared/matrix_checks.hpp"
#include "devices.hpp"

namespace quoin {

template <class T, class D>
bool BatchTree<T, D>::factor(Context<D>& ctx, const TreePlan& plan, InputView<T, D> A, bool checked, bool holds_q,
                             MatrixView<T, D> R) {
    const Span span(ctx, "tree of batches");
    const Index n = n_ = A.cols;
    levels_.clear();
    Matrix<T, D> stack;
    for (const BatchLevel& level : levels_of(plan, A.rows, n)) {
        throw_if_stopped(ctx);
        const Index each = level.each, count = level.count();
        const Members all{{}, count};
        const bool is_root = each == A.rows;
        // [R_1; R_2; …; the remaining rows] = S R
        const Range others{count * n, count * n + level.rest().size()};
        Matrix<T, D> above;
        if (!is_root) above = Matrix<T, D>::aligned(ctx, others.end, n);
        const auto S = is_root ? R : above.view();
        const auto Rs = matrices(level, S, n, n);
        const auto As = A.by_rows ? BatchView<const T, D>(A.data, each, n, A.ld, 1, each * A.ld, count)
                                  : matrices(level, A.stored(), each, each);
        if (holds_q) {
            levels_.push_back({level, SmallBatch<T, D>(ctx, each, n, count, nullptr, level.of)});
            auto& batch = levels_.back().batch;
            batch.factor(ctx, As, all, false);
            batch.unpack(ctx, Factor::R, all, Rs);
        } else {
            SmallBatch<T, D>::factor_to(ctx, each, n, As, all, false, Factor::R, Rs, {}, level.of);
        }
        if (!is_root) load<T>(ctx, A.row_block(level.rest()), S.row_block(others));
        if (!std::exchange(checked, true)) {
            const Scan seen = scanned<T, D>(ctx, MatrixView<const T, D>(S), Scalar<T>::safe_exponent);
            if (seen.scaled || seen.bad_row >= 0) return false;
        }
        stack = std::move(above);
        A = stack.view();
    }
    return true;
}

template <class T, class D>
void BatchTree<T, D>::apply_from(Context<D>& ctx, std::size_t l, Op op, MatrixView<T, D> C) const {
    if (l == levels_.size() || C.cols == 0) return;
    if constexpr (Tuning<D>::has_batched_trees) {
        const Level& level = levels_[l];
        const Index n = n_, count = level.count();
        const auto Cs = matrices(level, C, level.each, level.each);
        const auto apply_level = [&] { level.batch.apply_q(ctx, op, {{}, count}, Cs, Cs); };
        if (op == Op::Transpose) apply_level();
        if (l + 1 < levels_.size()) {
            // S := [the top n rows of every matrix; the remaining rows]
            Matrix<T, D> stack(ctx, count * n + level.rest().size(), C.cols);
            const auto S = stack.view();
            const auto tops = matrices(level, C, n, level.each), Ss = matrices(level, S, n, n);
            const auto rest = C.row_block(level.rest()), others = S.row_block({count * n, S.rows});
            copy_batch<T, D>(ctx, tops, Ss);
            copy<T>(ctx, rest, others);
            apply_from(ctx, l + 1, op, S);
            copy_batch<T, D>(ctx, Ss, tops);
            copy<T>(ctx, others, rest);
        }
        if (op == Op::None) apply_level();
    }
}

template <class T, class D>
void BatchTree<T, D>::form_from(Context<D>& ctx, std::size_t l, MatrixView<const T, D> E, MatrixView<T, D> Q) const {
    if (l == levels_.size()) return;
    if constexpr (Tuning<D>::has_batched_trees) {
        const Level& level = levels_[l];
        const Index n = n_, count = level.count();
        const Members all{{}, count};
        const auto Qs = matrices(level, Q, level.each, level.each);
        if (l + 1 == levels_.size()) {
            return E.data ? level.batch.form_q(ctx, all, matrices(level, E, n, n), Qs)
                          : level.batch.form_q(ctx, all, Qs);
        }
        // Q_b := Q_b [S_b; 0]. Row i of a triangle R_b is zero left of column i, in V and so in S too.
        Matrix<T, D> stack(ctx, count * n + level.rest().size(), n);
        const auto S = stack.view();
        form_from(ctx, l + 1, E, S);
        level.batch.form_q(ctx, all, matrices(level, std::as_const(stack).view(), n, n), Qs);
        copy<T>(ctx, S.row_block({count * n, S.rows}), Q.row_block(level.rest()));
    }
}

template <class T, class D>
bool TreeQ<T, D>::factor(Context<D>& ctx, const Plan& plan, InputView<T, D> A, MatrixView<T, D> memory, bool checked) {
    const bool holds_q = plan.q != QForm::None;
    if (plan.panel_width >= plan.cols) {
        panels.push_back({0, {}});
        return panels.back().tree.factor(ctx, plan.tree(), A, checked, holds_q, R.view());
    }
    const PanelColumns columns(plan);
    for (Index s = 0; s < columns.count(); ++s) {
        const Range here = columns[s], below{here.begin, plan.rows}, right{here.end, plan.cols};
        panels.push_back({here.begin, {}});
        auto& tree = panels.back().tree;
        tree.factor(ctx, plan.tree(), memory.block(below, here), true, true, R.view().block(here, here));
        // A₂ := QᵀA₂
        const Span span(ctx, "update", s);
        tree.apply_q(ctx, Op::Transpose, memory.block(below, right));
        copy<T>(ctx, memory.block(here, right), R.view().block(here, right));
        set_zero(ctx, R.view().block(here, {0, here.begin}));
        if (!holds_q) panels.clear();
    }
    return true;
}

template <class T, class D>
void TreeQ<T, D>::apply_q(Context<D>& ctx, Op op, MatrixView<T, D> C) const {
    for (std::size_t s = 0; s < panels.size(); ++s) {
        throw_if_stopped(ctx);
        // Qᵀ = … Q₂ᵀ Q₁ᵀ, Q = Q₁ Q₂ …
        const Panel& panel = panels[op == Op::Transpose ? s : panels.size() - 1 - s];
        panel.tree.apply_q(ctx, op, C.row_block({panel.first, C.rows}));
    }
}

template <class T, class D>
void TreeQ<T, D>::form_q(Context<D>& ctx, MatrixView<T, D> Q, MatrixView<const T, D> E) const {
    const Span span(ctx, "form Q");
    for (auto panel = panels.rbegin(); panel != panels.rend(); ++panel) {
        throw_if_stopped(ctx);
        const Range below{panel->first, Q.rows}, here{panel->first, panel->first + panel->tree.cols()};
        // columns right of the panel: [0; Q₂₂] := Q_panel [0; Q₂₂]
        const auto C = Q.block(below, {here.end, Q.cols});
        set_zero(ctx, C.row_block({0, here.size()}));
        panel->tree.apply_q(ctx, Op::None, C);
        panel->tree.form_q(ctx, Q.block(below, here), E);
    }
}

#define QUOIN_INSTANTIATE(T, D)     \
    template class BatchTree<T, D>; \
    template struct TreeQ<T, D>;
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
