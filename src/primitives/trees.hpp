#pragma once

// Trees on the host: panels A (rows×width) under a PanelTree; V and R overwrite A, T is inner_block × t_cols(). Trees on
// a GPU are batches (small_batch.hpp).

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

}  // namespace quoin
