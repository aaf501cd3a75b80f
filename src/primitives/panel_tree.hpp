#pragma once

// The shape of a reduction tree: domains, leaves, levels and the sizes of T.

#include <algorithm>

#include "quoin/matrix.hpp"

namespace quoin {

/// Geometry of one panel's reduction tree, a pure value; `docs/algorithms.md` draws it.
///
/// The panel's rows are cut into domains, each domain into leaves. In a domain the leaves are reduced one after the
/// other, a flat tree: leaf 0 gives R, each further leaf is stacked under it. Above the domains stands a tree of any
/// fan-in: at level l the heads are the multiples of fan_in^(l+1), and each absorbs the R factors of its up to
/// fan_in − 1 members in order. One domain is a flat tree; one leaf a domain is the tree of the literature; one leaf in
/// all is LAPACK's panel.
///
///     rows ┌────────┐ domain 0: leaf 0 ──┐ flat   ┐
///          │        │           leaf 1 ──┘        ├── level 0 ──┐
///          ├────────┤ domain 1: leaf 0 ──┐        │             │
///          │        │           leaf 1 ──┘        ┘             ├── level 1 ── R
///          ├────────┤ domain 2 ...                ┐             │
///          │        │                             ├── level 0 ──┘
///          └────────┘ domain 3 (ragged)           ┘
struct PanelTree {
    Index rows = 0;
    Index width = 0;
    Index inner_block = 1;  ///< columns of one T
    Index leaf_rows = 1;
    Index domain_rows = 1;  ///< a multiple of leaf_rows
    Index fan_in = 2;

    /// Every domain has at least `width` rows: a shorter remainder joins the last one. rows >= width.
    Index domains() const {
        if (rows <= domain_rows) return 1;
        const Index whole = std::max<Index>(1, rows / domain_rows);
        const Index rest = rows - whole * domain_rows;
        return rest > 0 && rest >= width ? whole + 1 : whole;
    }
    Range domain(Index d) const { return {d * domain_rows, d + 1 == domains() ? rows : (d + 1) * domain_rows}; }
    /// Leaves of domain d; leaf 0 has at least `width` rows, the last one is ragged.
    Index leaves(Index d) const {
        const Index rows_d = domain(d).size();
        return rows_d <= leaf_rows ? 1 : (rows_d + leaf_rows - 1) / leaf_rows;
    }
    Range leaf(Index d, Index t) const {
        const Range rows_d = domain(d);
        const Index begin = rows_d.begin + t * leaf_rows;
        return {begin, std::min(rows_d.end, begin + leaf_rows)};
    }
    Index levels() const {
        Index count = 0;
        for (Index stride = 1; stride < domains(); stride *= fan_in) ++count;
        return count;
    }
    /// Distance between the heads' members at `level`.
    Index stride(Index level) const {
        Index s = 1;
        for (Index l = 0; l < level; ++l) s *= fan_in;
        return s;
    }
    Index nodes(Index level) const {
        const Index span = stride(level) * fan_in;
        return (domains() + span - 1) / span;
    }

    /// Where T of a leaf or of the node that absorbs domain d stands: columns of an inner_block × t_cols() array.
    Index t_of_leaf(Index d, Index t) const { return (d * (domain_rows / leaf_rows) + t) * width; }
    Index t_of_node(Index d) const { return (leaf_count() + d - 1) * width; }
    Index t_cols() const { return (leaf_count() + domains() - 1) * width; }
    Index leaf_count() const {
        const Index d = domains() - 1;
        return (d > 0 ? d * (domain_rows / leaf_rows) : 0) + leaves(d);
    }
    /// LAPACK's panel: one leaf, one T.
    bool lapack_panel() const { return domains() == 1 && leaves(0) == 1 && inner_block >= width; }
};

}  // namespace quoin
