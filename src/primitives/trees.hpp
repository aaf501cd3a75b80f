#pragma once

// Trees: panels A (rows×width) under a PanelTree; V and R overwrite A, T is inner_block × t_cols().
//
// Where the host's nodes absorb their members one after the other, with a T each, a GPU's absorb up to 15 at once,
// [R_head; R_1; R_2; …] = H [R; 0], with one T in the place of the first one's. A GPU's panels have at most 256 columns
// and its leaves at most 256 rows; panels of more than 32 columns go by sub-panels of 32 (cuda/kernels/geometry.cuh),
// each with its T, so that inner_block is min(width, 32) at least, and a leaf may have fewer rows than the panel
// columns.

#include "primitives/context.hpp"
#include "primitives/panel_tree.hpp"
#include "quoin/qr.hpp"

namespace quoin {

/// Every domain: leaf 0 = H R (geqrt), then [R; leaf t] = H [R; 0] for t = 1, 2, … (tpqrt).
template <class T, class D>
void factor_leaves(Context<D>& ctx, const PanelTree& tree, View<T, D> A, View<T, D> Tf);

/// Every node of one level: [R_head; R_member] = H [R; 0], member by member (tpqrt of triangles); V of the node
/// overwrites the member's triangle.
template <class T, class D>
void factor_nodes(Context<D>& ctx, const PanelTree& tree, Index level, View<T, D> A, View<T, D> Tf);

/// `factor_nodes` of all levels and C := Q_leavesᵀ C, which are independent; on a GPU the former on the side stream.
template <class T, class D>
void factor_nodes_and_apply_leaves(Context<D>& ctx, const PanelTree& tree, View<T, D> A, View<T, D> Tf, View<T, D> C);

/// C := op(Q_leaves) C (gemqrt, tpmqrt): the horizontal update. C has the panel's rows.
template <class T, class D>
void apply_leaves(Context<D>& ctx, const PanelTree& tree, Op op, View<const T, D> A, View<const T, D> Tf, View<T, D> C);

/// C := op(Q_level) C: the tree update, on the top `width` rows of the domains.
template <class T, class D>
void apply_nodes(Context<D>& ctx, const PanelTree& tree, Index level, Op op, View<const T, D> A, View<const T, D> Tf,
                 View<T, D> C);

/// One level down of Q := Q_tree [I; 0]: every head's upper triangular block E becomes [E; E_member], in place of V.
template <class T, class D>
void form_nodes(Context<D>& ctx, const PanelTree& tree, Index level, View<T, D> A, View<const T, D> Tf);

/// The last step of it: each domain's rows of the thin Q from its block E, in place of V. Where C has columns, C :=
/// Q_leaves C before.
template <class T, class D>
void form_leaves(Context<D>& ctx, const PanelTree& tree, View<T, D> A, View<const T, D> Tf, View<T, D> C = {});

/// R of every domain without storing V: `stack` ((domains·width)×width) receives R_0, R_1, … with exact zeros below.
template <class T, class D>
void reduce_leaves(Context<D>& ctx, const PanelTree& tree, Input<T, D> A, View<T, D> stack);

/// The upper triangle of A := I; entries below it keep their values: the root of a tree before `form_nodes`.
template <class T, class D>
void set_root(Context<D>& ctx, View<T, D> A);
/// Copies the upper triangle of R to A. Entries of A below it keep their values.
template <class T, class D>
void store_triangle(Context<D>& ctx, View<const T, D> R, View<T, D> A);

}  // namespace quoin
