#pragma once

// A flat TSQR tree over blocks of rows, each a factorization in LAPACK's format (Demmel, Grigori, Hoemmen, Langou
// 2012):
//
//     A_0 = H_0 [R_0; 0],    [R_{i−1}; A_i] = H_i [R_i; 0],    R = R_N.
//
// Backward, E_N = I and H_i [E_i; 0] = [E_{i−1}; Q_i] give Q_i, the rows of the thin Q for A_i. H_0 [E_0; 0] gives the
// rows for A_0. E is upper triangular up to the blocks on its diagonal, because the panels leave zeros where R has
// them.

#include "quoin/qr.hpp"

namespace quoin {

/// One H_i. W is A_0 or [R_{i−1}; A_i]. After the factorization it has V below its diagonal and R_i above.
template <class T, class D>
struct FlatTreeNode {
    Matrix<T, D> W;
    Matrix<T, D> Tf;
};

/// Returns the plan of a node of `rows` rows: blocked Householder, whose V and T stay; or TSQR, which leaves neither,
/// if only R is wanted and the columns are few.
template <class T, class D>
Plan plan_node(const Context<D>& ctx, Index rows, Index n, bool want_q);

/// Factors W = H [R; 0]. Throws NonFiniteEntry with the row of W; the node is spent then.
template <class T, class D>
void factor_node(Context<D>& ctx, const Plan& plan, FlatTreeNode<T, D>& node);

/// W := H [E; 0], in place of V, for the n×n E of the node after this one (the last node: I). 2(m − n/3)n² flops for m
/// rows.
template <class T, class D>
void form_node(Context<D>& ctx, const Plan& plan, FlatTreeNode<T, D>& node, MatrixView<const T, D> E);

/// Returns the T factors of a node under `plan`, uninitialised.
template <class T, class D>
Matrix<T, D> node_t(Context<D>& ctx, const Plan& plan);

}  // namespace quoin
