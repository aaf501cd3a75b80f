// Cuts the columns of a plan into panels, and the rows of a panel into a tree.

#include "algorithms/one_matrix/panel_layout.hpp"

namespace quoin {

PanelTree tree_of(const Plan& plan, Index rows, Index width) {
    PanelTree tree;
    tree.rows = rows;
    tree.width = width;
    tree.inner_block = std::min(plan.inner_block, std::max(plan.panel_width, plan.householder().last_width));
    const TreePlan chosen = plan.tree();
    if (plan.method == Method::BlockedHouseholder || chosen.leaf_rows == 0) {
        tree.leaf_rows = tree.domain_rows = std::max<Index>(rows, 1);
    } else {
        tree.leaf_rows = chosen.leaf_rows;
        tree.domain_rows = chosen.leaf_rows * chosen.domain_leaves;
        tree.fan_in = chosen.fan_in;
    }
    return tree;
}

std::vector<BatchLevel> levels_of(const TreePlan& tree, Index m, Index n) {
    std::vector<BatchLevel> levels;
    if (n == 0) return levels;
    for (Index rows = m, most = tree.leaf_rows;; most = tree.fan_in * n) {
        const bool is_only_matrix = levels.empty() && rows <= most;
        const BatchLevel level{rows, std::min(rows, most), is_only_matrix ? BatchOf::Matrices : BatchOf::TreeLevel};
        levels.push_back(level);
        if (level.each == rows) return levels;
        rows = level.count() * n + level.rest().size();
    }
}

PanelColumns::PanelColumns(const Plan& plan)
    : k_(std::min(plan.rows, plan.cols)), width_(std::max<Index>(1, plan.panel_width)), last_width_(width_) {
    const HouseholderPlan chosen = plan.householder();
    if (chosen.last_width > 0) last_width_ = chosen.last_width;
    const Index before = chosen.last_width > 0 ? std::clamp<Index>(plan.rows - chosen.last_rows, 0, k_) : 0;
    first_ = (before + width_ - 1) / width_;
    start_ = std::min(k_, first_ * width_);
}

std::vector<Panel> panels_of(const Plan& plan) {
    if (const Index k = std::min(plan.rows, plan.cols);
        k > 0 && plan.panel_width >= k && plan.householder().last_width == 0)
        return {{0, tree_of(plan, plan.rows, k), 0}};
    const PanelColumns columns(plan);
    std::vector<Panel> panels;
    Index t_col = 0;
    for (Index i = 0; i < columns.count(); ++i) {
        const Range cols = columns[i];
        panels.push_back({cols.begin, tree_of(plan, plan.rows - cols.begin, cols.size()), t_col});
        t_col += panels.back().tree.t_cols();
    }
    return panels;
}

Plan householder_plan(Index m, Index n, Index width) {
    Plan plan;
    plan.method = Method::BlockedHouseholder;
    plan.rows = m;
    plan.cols = n;
    plan.panel_width = plan.inner_block = width;
    return plan;
}

}  // namespace quoin
