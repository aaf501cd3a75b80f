#pragma once

// PanelTree (algorithms/tree.hpp) as kernels take it: a plain value with its counts worked out on the host.

#include "algorithms/tree.hpp"

namespace quoin::cuda {

/// Columns that every tile kernel computes on: narrower panels are padded with zero columns, whose H is I.
inline constexpr int tile_width = 32;
/// Most rows of a leaf; the kernels exist for tiles of 64, 128 and this many, and pad shorter leaves with zero rows.
inline constexpr int most_leaf_rows = 256;
/// Most members that a node absorbs at once, with one T: a warp each.
inline constexpr int most_node_warps = 15;

struct TreeGeometry {
    Index rows, width, leaf_rows, domain_rows, fan_in, domains, leaves_each, leaf_count;

    explicit TreeGeometry(const PanelTree& tree)
        : rows(tree.rows),
          width(tree.width),
          leaf_rows(tree.leaf_rows),
          domain_rows(tree.domain_rows),
          fan_in(tree.fan_in),
          domains(tree.domains()),
          leaves_each(tree.domain_rows / tree.leaf_rows),
          leaf_count(tree.leaf_count()) {}

    __device__ Index domain_begin(Index d) const { return d * domain_rows; }
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
    __device__ Index t_of_leaf(Index d, Index t) const { return (d * leaves_each + t) * width; }
    __device__ Index t_of_node(Index d) const { return (leaf_count + d - 1) * width; }
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

}  // namespace quoin::cuda
