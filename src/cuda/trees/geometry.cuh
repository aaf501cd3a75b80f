#pragma once

// PanelTree (primitives/panel_tree.hpp) as kernels take it: a plain value with its counts worked out on the host.
//
// The kernels compute on tiles of 32 columns. A wider panel is a list of sub-panels, each over the whole tree. On a
// level (the leaves, or the nodes of one level) they go in order, and each is applied to the columns on its right
// before the next is factored.
//
//      domain              member of a node, columns [first, first + width)
//     ┌────┬────┬────┐    ┌────┬────┬────┐
//     │ R  │ R  │    │    │ ╲  │ V  │    │  rectangles of 32 rows
//     ├────┼────┤    │    │  ╲ ├────┤    │
//     │ V  │ ╲  │    │    │   ╲│ ╲  │    │  and a triangle, all of them V; the head's part is the rows of the triangle
//     │    │  V │    │    └────┴────┴────┘
//     └────┴────┴────┘  rows < first of a domain are done with

#include "cuda/kernel_choice.hpp"
#include "primitives/panel_tree.hpp"

namespace quoin::cuda {

/// The sub-panel that begins at column `first`, a multiple of 32, of the panel. A, Tf and C of a kernel begin there, at
/// the panel's first T, and at the panel's first row.
struct TreeGeometry {
    Index rows, width, first, tree_width, leaf_rows, domain_rows, fan_in, domains, leaves_each, leaf_count;

    TreeGeometry(const PanelTree& tree, Index first_)
        : rows(tree.rows),
          width(tree.width - first_ < tile_width ? tree.width - first_ : tile_width),
          first(first_),
          tree_width(tree.width),
          leaf_rows(tree.leaf_rows),
          domain_rows(tree.domain_rows),
          fan_in(tree.fan_in),
          domains(tree.domains()),
          leaves_each(tree.domain_rows / tree.leaf_rows),
          leaf_count(tree.leaf_count()) {}

    /// The domain's first row, and the first that the sub-panel reaches.
    __device__ Index domain_top(Index d) const { return d * domain_rows; }
    __device__ Index domain_begin(Index d) const { return domain_top(d) + first; }
    __device__ Index domain_end(Index d) const { return d + 1 == domains ? rows : (d + 1) * domain_rows; }
    __device__ Index leaves(Index d) const {
        const Index count = (domain_end(d) - domain_begin(d) + leaf_rows - 1) / leaf_rows;
        return count > 1 ? count : 1;
    }
    __device__ Index leaf_begin(Index d, Index t) const { return domain_begin(d) + t * leaf_rows; }
    __device__ int leaf_size(Index d, Index t) const {
        const Index rest = domain_end(d) - leaf_begin(d, t);
        return static_cast<int>(rest < leaf_rows ? rest : leaf_rows);
    }
    __device__ Index t_of_leaf(Index d, Index t) const { return (d * leaves_each + t) * tree_width + first; }
    __device__ Index t_of_node(Index d) const { return (leaf_count + d - 1) * tree_width + first; }
    /// Tiles of 32 rows of a node's member: rectangles over a triangle.
    __host__ __device__ int member_tiles() const { return static_cast<int>(first / tile_width) + 1; }
};

/// The node of one level that a block works on: the head and how many members it absorbs.
struct Node {
    Index head, stride;
    Index members;
    __device__ Node(const TreeGeometry& tree, Index stride_, Index index) : stride(stride_) {
        const Index span = stride * tree.fan_in;
        head = index * span;
        const Index end = tree.domains < head + span ? tree.domains : head + span;
        members = (end - head - 1) / stride;
    }
    __device__ Index member(Index s) const { return head + s * stride; }
};

/// The members that a node's warps absorb at once: a warp holds one tile, and the last member may have to wait for the
/// next turn. The first sub-panel has no rectangles.
template <int warps, bool rectangles>
struct NodeTurns {
    int each;       // members a turn
    int slot;       // the member among them that is the warp's
    int tile;       // its tile
    bool triangle;  // the last one

    __device__ explicit NodeTurns(const TreeGeometry& tree) {
        const int tiles = rectangles ? tree.member_tiles() : 1, warp = static_cast<int>(threadIdx.x) / 32;
        each = warps / tiles;
        slot = warp / tiles;
        tile = warp % tiles;
        triangle = !rectangles || tile + 1 == tiles;
    }
    __device__ Index count(const Node& node) const { return (node.members + each - 1) / each; }
    /// Whether the warp has a tile in the turn that begins with member `first`.
    __device__ bool mine(const Node& node, Index first) const { return slot < each && first + slot <= node.members; }
    /// The domain it is of, or, without one, another of the turn's.
    __device__ Index domain(const Node& node, Index first) const {
        return node.member(mine(node, first) ? first + slot : first);
    }
    /// Its first row.
    __device__ Index row(const TreeGeometry& tree, Index domain) const {
        return tree.domain_top(domain) + tile * tile_width;
    }
    /// Rows below the diagonal that count: none of a triangle, all of a rectangle.
    __device__ int below() const { return triangle ? 0 : tile_width; }
    /// Its rows.
    __device__ int height(const TreeGeometry& tree) const {
        return triangle ? static_cast<int>(tree.width) : tile_width;
    }
};

}  // namespace quoin::cuda
