#pragma once

// The steps of a tree over one sub-panel, at most 32 columns of the panel: V are these columns. tree_factor.cu,
// tree_apply.cu and tree_form.cu hold them, for their kernels take long to compile.

#include "cuda/runtime/device.hpp"
#include "cuda/trees/geometry.cuh"

namespace quoin::cuda {

/// V and T := the reflectors of every leaf.
template <class T>
void factor_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, MatrixView<T, Cuda> V,
                      MatrixView<T, Cuda> Tf);
/// stack := the R of every domain's leaves, V is only read.
template <class T>
void reduce_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry,
                      MatrixView<const T, Cuda> V, MatrixView<T, Cuda> stack);
/// V and T := the reflectors of one level's nodes.
template <class T>
void factor_nodes_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Index level,
                     MatrixView<T, Cuda> V, MatrixView<T, Cuda> Tf);
/// C := op(Q) C for the leaves' reflectors.
template <class T>
void apply_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Op op,
                     MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C);
/// C := op(Q) C for the reflectors of one level's nodes.
template <class T>
void apply_nodes_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Index level, Op op,
                    MatrixView<const T, Cuda> V, MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C);
/// C := Q C for the leaves' reflectors, and then their columns of Q in place of V: in one kernel where C is narrow.
template <class T>
void form_leaves_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, MatrixView<T, Cuda> V,
                    MatrixView<const T, Cuda> Tf, MatrixView<T, Cuda> C);
/// The columns of Q of one level's nodes in place of V.
template <class T>
void form_nodes_of(Context<Cuda>& ctx, const PanelTree& tree, const TreeGeometry& geometry, Index level,
                   MatrixView<T, Cuda> V, MatrixView<const T, Cuda> Tf);

}  // namespace quoin::cuda
