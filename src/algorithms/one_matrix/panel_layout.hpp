#pragma once

// The panels of a plan: their columns and their trees.

#include <algorithm>
#include <vector>

#include "primitives/panel_tree.hpp"
#include "primitives/small_batch.hpp"
#include "quoin/options.hpp"

namespace quoin {

/// One panel of a ReflectorForest: columns [first, first + tree.width), rows [first, m).
struct Panel {
    Index first = 0;
    PanelTree tree;
    Index t_col = 0;  ///< column at which its T factors begin
};

/// Returns the tree of a panel of this plan.
PanelTree tree_of(const Plan& plan, Index rows, Index width);

/// The matrices of one level of a tree of batches: `each` rows, as often as they fit, and the remaining rows.
struct BatchLevel {
    Index rows = 0, each = 0;
    BatchOf of = BatchOf::TreeLevel;  ///< Matrices: the tree has one matrix
    Index count() const { return rows / each; }
    Range rest() const { return {count() * each, rows}; }
};
/// Returns the levels of a tree over m×n, m >= n, from the leaves up. The last has one matrix. Each higher level has n
/// rows of every matrix of the level below, its R, and the rows that remained there.
std::vector<BatchLevel> levels_of(const TreePlan& tree, Index m, Index n);

/// The columns of a plan's panels, k = min(m, n) in all.
class PanelColumns {
public:
    explicit PanelColumns(const Plan& plan);
    Index count() const { return first_ + (k_ - start_ + last_width_ - 1) / last_width_; }
    Range operator[](Index i) const {
        const Index begin = i < first_ ? i * width_ : start_ + (i - first_) * last_width_,
                    end = begin + (i < first_ ? width_ : last_width_);
        return {begin, std::min(end, k_)};
    }
    /// Returns the panel that has column j.
    Index panel_of(Index j) const { return j < start_ ? j / width_ : first_ + (j - start_) / last_width_; }

private:
    Index k_, width_, last_width_;
    Index first_;  ///< panels of the first width
    Index start_;  ///< columns of these
};
/// Returns the panels of a plan with their trees.
std::vector<Panel> panels_of(const Plan& plan);

/// Returns a plan of blocked Householder that has panels of `width` columns, and nothing else.
Plan householder_plan(Index m, Index n, Index width);

/// Whether a panel of `rows` rows of this plan is reconstructed.
inline bool is_tall_panel(const Plan& plan, Index rows) {
    const Index min_rows = plan.householder().reconstruct_rows;
    return min_rows > 0 && rows >= min_rows;
}
/// Makes a plan factor its matrix by panels, not in one launch.
inline void factor_by_panels(Plan& plan) {
    if (auto* const chosen = std::get_if<HouseholderPlan>(&plan.choices)) chosen->one_launch = false;
}

}  // namespace quoin
