// Blocked Householder QR in compact WY form (Schreiber and Van Loan 1989), LAPACK's format: one leaf a panel.

#include <optional>

#include "algorithms/one_matrix/blocked_householder.hpp"
#include "algorithms/one_matrix/full_t.hpp"
#include "algorithms/one_matrix/host_panel.hpp"
#include "algorithms/one_matrix/reconstruct_householder.hpp"
#include "algorithms/one_matrix/tsqr_caqr.hpp"
#include "devices.hpp"

namespace quoin {

namespace {

/// Factors a tall panel by way of an orthonormal basis: CholeskyQR2, perhaps after a sketch, if it certifies, else a
/// tree; then Householder reconstruction. Factors it column by column if a column is zero, or out of the range that may
/// be squared. A panel too wide for one reconstruction is factored by halves: H = H₁ diag(I, H₂).
template <class T, class D>
void factor_tall_panel(Context<D>& ctx, const Plan& plan, MatrixView<T, D> A, MatrixView<T, D> Tf,
                       OverlappedWork& overlapped) {
    const Index m = A.rows, n = A.cols, most = tuning_of(ctx).max_top_cols(m, scalar_kind<T>);
    if (n > most) {
        const Index half = (n + most - 1) / most / 2 * most;
        const Range left{0, half}, right{half, n};
        set_zero(ctx, Tf);
        factor_tall_panel(ctx, plan, A.col_block(left), Tf.block(left, left), overlapped);
        apply_panel<T>(ctx, Op::Transpose, A.col_block(left), Tf.block(left, left), A.col_block(right),
                       plan.arithmetic);
        factor_tall_panel(ctx, plan, A.block({half, m}, right), Tf.block(right, right), overlapped);
        join_two<T, D>(ctx, A, left, right, Tf);
        return;
    }
    using State = typename CholeskyPasses<T, D>::State;
    Matrix<T, D> R(ctx, n, n);
    const auto passes = factor_by_cholesky<T, D>(ctx, CholeskyChain::SketchedIfRefused, A, Tf, R.view(), overlapped);
    if (passes.state == State::Certified) return;
    // if A has a column of zeros, where H = I, a tree finds another Q than the reflectors of this format
    if (passes.state == State::Unusable) return factor_panel<T>(ctx, A, Tf);
    if (passes.state == State::Improved) {
        // A = Q₁ R, Q₁ = Q R₂
        Matrix<T, D> R2(ctx, n, n);
        orthonormalize_by_tree<T, D>(ctx, plan, A, R2.view());
        multiply_upper<T>(ctx, R2.view(), R.view(), R.view());
    } else {
        orthonormalize_by_tree<T, D>(ctx, plan, A, R.view());
    }
    reconstruct_householder<T, D>(ctx, A, R.view(), Tf);
}

}  // namespace

template <class T, class D>
void factor_one_panel(Context<D>& ctx, const Plan& plan, Index step, MatrixView<T, D> A, MatrixView<T, D> Tf,
                      OverlappedWork& overlapped) {
    {
        const Span span(ctx, "panel", step);
        if (is_tall_panel(plan, A.rows)) {
            factor_tall_panel(ctx, plan, A, Tf, overlapped);
        } else {
            // the overlapped work counts as an update of A.cols columns
            factor_panel<T>(ctx, A, Tf, overlapped ? A.cols : 0);
        }
    }
    overlapped();
}

template <class T, class D>
void factor_blocked_householder(Context<D>& ctx, const Plan& plan, ForestView<T, D> forest, MatrixView<T, D> ST,
                                OverlappedWork rest) {
    const Index m = forest.A.rows, n = forest.A.cols;
    const Index count = static_cast<Index>(forest.panels.size());
    const bool with_s = ST.data != nullptr, panels_on_host = plan.householder().panels_on_host;
    if (count == 1 && forest.panels[0].tree.width == n && !with_s && !panels_on_host && !rest) {
        OverlappedWork nothing;
        return factor_one_panel<T, D>(ctx, plan, 0, forest.A, forest.panel_t(forest.panels[0]), nothing);
    }
    // columns that every panel updates; columns right of them pass all panels at the end
    const bool wide_apart = count > 1 && !with_s && !panels_on_host && tuning_of(ctx).wide_part_at_once(m, n);
    const Index updated = wide_apart ? m : n;
    if (is_complex<T> && with_s) throw InvalidArgument("S and T of complex reflectors share no diagonal");
    std::optional<HostPanels<T, D>> host;
    if (panels_on_host && count > 0) host.emplace(ctx, m, plan.panel_width);
    const auto factor = [&](Context<D>& where, Index s, OverlappedWork overlapped) {
        const Panel& panel = forest.panels[s];
        if (host) {
            overlapped();
            const auto A = forest.panel_a(panel);
            return host->factor(where, s, is_tall_panel(plan, A.rows), A, forest.panel_t(panel));
        }
        factor_one_panel<T, D>(where, plan, s, forest.panel_a(panel), forest.panel_t(panel), overlapped);
    };
    SideWork side(ctx);
    const auto leave = [&](Context<D>& where, Index s) {
        if (host) host->leave(where, s, forest.panel_a(forest.panels[s]));
    };
    if (count > 0) {
        const bool beside = static_cast<bool>(rest);
        Context<D>& critical = beside ? side.fork() : ctx;
        leave(critical, 0);
        factor(critical, 0, std::move(rest));
        if (beside) side.join();
    }
    rest();  // if there is no panel
    for (Index s = 0; s < count; ++s) {
        throw_if_stopped(ctx);
        const Panel& panel = forest.panels[s];
        const auto A = forest.panel_a(panel);
        const auto Tf = forest.panel_t(panel);
        const Range before{0, panel.first}, here{panel.first, panel.first + panel.tree.width}, below{panel.first, m};
        FullTStep<T, D> step;
        const auto begin_step = [&] {
            if (!with_s) return;
            // S₂ = V₂T₂ᵀ;  T₁₂ = −S₁ᵀV₂T₂,  S₁ := S₁ + V₂T₁₂ᵀ together with the trailing matrix
            const Span span(ctx, "S", s);
            form_s<T>(ctx, A, Tf, ST.block(below, here));
            step = {ST.block(below, here), ST.block(below, before), ST.block(before, here)};
        };
        // A₂ := HᵀA₂, together with the next panel
        const auto C = forest.A.block(below, {here.end, updated});
        const auto apply = [&](const PanelProduct<T, D>& H, MatrixView<T, D> C) {
            const Span span(ctx, "update", s);
            H.apply(C);
        };
        const auto apply_rest = [&](const PanelProduct<T, D>& H, MatrixView<T, D> C) {
            begin_step();
            if (with_s) {
                apply_and_extend<T>(ctx, A, Tf, C, step);
            } else if (C.cols > 0) {
                apply(H, C);
            }
        };
        if (s + 1 == count) {
            apply_rest(PanelProduct<T, D>(ctx, Op::Transpose, A, Tf, with_s ? 0 : C.cols, plan.arithmetic), C);
        } else if (host || is_tall_panel(plan, A.rows - panel.tree.width)) {
            const Range next{0, forest.panels[s + 1].tree.width}, rest{next.end, C.cols};
            const PanelProduct<T, D> H(ctx, Op::Transpose, A, Tf, C.cols, plan.arithmetic);
            apply(H, C.col_block(next));
            Context<D>& critical = side.fork();
            leave(critical, s + 1);
            factor(critical, s + 1, OverlappedWork([&] { apply_rest(H, C.col_block(rest)); }));
            side.join();
        } else {
            begin_step();
            apply_and_factor_next<T>(ctx, A, Tf, C, forest.panel_t(forest.panels[s + 1]), step, plan.arithmetic);
        }
        if (with_s) store_triangle<T>(ctx, Tf, ST.block(here, here));
    }
    if (wide_apart) {
        const Span span(ctx, "update");
        apply_panels<T, D>(ctx, Op::Transpose, forest.factors(), forest.A.col_block({updated, n}), plan.arithmetic);
    }
}

#define QUOIN_INSTANTIATE(T, D)                                                                                  \
    template void factor_one_panel<T, D>(Context<D>&, const Plan&, Index, MatrixView<T, D>, MatrixView<T, D>,    \
                                         OverlappedWork&);                                                       \
    template void factor_blocked_householder<T, D>(Context<D>&, const Plan&, ForestView<T, D>, MatrixView<T, D>, \
                                                   OverlappedWork);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
