// Factors one node of the flat tree, and forms its Q.

#include "file_qr/flat_tree.hpp"
#include "algorithms/one_matrix/factorization.hpp"

#include "devices.hpp"

namespace quoin {

template <class T, class D>
Plan plan_node(const Context<D>& ctx, Index rows, Index n, bool want_q) {
    Options options;
    const bool by_tree = !want_q && rows >= n && n <= Tuning<D>::stream_tree_cols;
    options.method = by_tree ? Method::TSQR : Method::BlockedHouseholder;
    options.q = by_tree ? QForm::None : QForm::Reflectors;
    Plan plan = plan_qr<T, D>(ctx, rows, n, options);
    factor_by_panels(plan);  // a node has its V and T by panels
    return plan;
}

template <class T, class D>
Matrix<T, D> node_t(Context<D>& ctx, const Plan& plan) {
    ReflectorForest<T, D> forest;
    lay_out_panels(ctx, plan, forest);
    return std::move(forest.Tf);
}

template <class T, class D>
void factor_node(Context<D>& ctx, const Plan& plan, FlatTreeNode<T, D>& node) {
    if (plan.q == QForm::None) {
        Options options;
        options.method = plan.method;
        options.q = QForm::None;
        const Matrix<T, D> R = qr<T, D>(ctx, std::as_const(node.W).view(), options).r(ctx);
        copy<T>(ctx, R.view(), node.W.view().row_block({0, plan.cols}));
        return;
    }
    QR<T, D> f = qr<T, D>(ctx, std::move(node.W), plan);
    auto& forest = Inside::of(f).reflectors()->forest;
    node.W = std::move(forest.A);
    node.Tf = std::move(forest.Tf);
}

template <class T, class D>
void form_node(Context<D>& ctx, const Plan& plan, FlatTreeNode<T, D>& node, MatrixView<const T, D> E) {
    const Index m = plan.rows, n = plan.cols;
    const std::vector<Panel> panels = panels_of(plan);
    const ForestView<T, D> forest{panels, node.W.view(), node.Tf.view()};
    Matrix<T, D> copy_of_v(ctx, m, std::min(plan.panel_width, n));
    for (auto panel = panels.rbegin(); panel != panels.rend(); ++panel) {
        throw_if_stopped(ctx);
        const Index first = panel->first, width = panel->tree.width;
        const Range here{first, first + width}, right{first, n};
        const auto V = copy_of_v.view().block({0, m - first}, {0, width});
        const auto A = forest.panel_a(*panel);
        copy<T>(ctx, A, V);
        set_zero(ctx, A);
        // [E(here, right); the rows below] := H_panel [E(here, right); the rows below]
        copy<T>(ctx, E.block(here, right), node.W.view().block(here, right));
        apply_panel<T>(ctx, Op::None, V, forest.panel_t(*panel), node.W.view().block({first, m}, right));
    }
}

#define QUOIN_INSTANTIATE(T, D)                                                     \
    template Plan plan_node<T, D>(const Context<D>&, Index, Index, bool);           \
    template Matrix<T, D> node_t<T, D>(Context<D>&, const Plan&);                   \
    template void factor_node<T, D>(Context<D>&, const Plan&, FlatTreeNode<T, D>&); \
    template void form_node<T, D>(Context<D>&, const Plan&, FlatTreeNode<T, D>&, MatrixView<const T, D>);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
