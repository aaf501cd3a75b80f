#pragma once

// Reflectors stacked under a triangle (?tpqrt), and chains of them, which are the row blocks of ?latsqr: a flat tree.

#include "quoin/qr.hpp"

namespace quoin::lapack {

/// Leaves of V (rows×n), one below the other, each reflected into the same n×n triangle:
///
///     ┌ R ┐ n         ┌ I          ┐       T of leaf t: nb×n, columns [t n, (t + 1) n), the upper triangular factor of
///     ├───┤           ├────────────┤       each nb columns of V in its own columns
///     │ V │ leaf_rows │ v v v v v  │
///     ├───┤           │ v v v v v  │ ┐
///     │ V │ the rest  │ v v v v v  │ │ l rows, where the columns of one leaf end on a diagonal;
///     └───┘           │   v v v v  │ ┘ entries below it are neither read nor written
///                     └            ┘
struct Stack {
    Index rows = 0, n = 0, nb = 1;
    Index leaf_rows = 1;
    Index l = 0;  ///< not 0 only where there is one leaf

    Index leaves() const { return (rows + leaf_rows - 1) / leaf_rows; }
    Range leaf(Index t) const { return {t * leaf_rows, std::min(rows, (t + 1) * leaf_rows)}; }
};

/// Factors [R; B_0; B_1; …] = Q_0 Q_1 … [R'; 0]. V overwrites B, and R' the upper triangle of R. 2 rows n² flops, and
/// rows n² more for T.
template <class T>
void factor_stacked(Context<Host>& ctx, const Stack& stack, MatrixView<T> R, MatrixView<T> B, MatrixView<T> Tf);

/// [C_top; C] := op(Q_0 Q_1 …) [C_top; C], C_top n×p and C rows×p, or from the right with their transposes' shapes.
/// Entries below the diagonals of T are not read. 4 rows n p flops.
template <class T>
void apply_stacked(Context<Host>& ctx, Side side, Op op, const Stack& stack, MatrixView<const T> V,
                   MatrixView<const T> Tf, MatrixView<T> C_top, MatrixView<T> C);

/// [E; V] := Q_0 Q_1 … [I; 0] in place of V: E n×n upper triangular, zeros below. 2 rows n² flops.
template <class T>
void form_stacked(Context<Host>& ctx, const Stack& stack, MatrixView<T> V, MatrixView<const T> Tf, MatrixView<T> E);

/// A (m×n, m >= n) = Q [R; 0] in row blocks as ?latsqr: the first mb rows in panels of nb columns, then mb − n rows at
/// a time stacked under R; all at once where mb <= n or mb >= m. Tf: nb × n·(number of blocks). V and R overwrite A.
template <class T>
const char* factor_row_blocks(Context<Host>& ctx, Index mb, Index nb, MatrixView<T> A, MatrixView<T> Tf);
/// C := op(Q) C or C op(Q), Q of `factor_row_blocks`.
template <class T>
const char* apply_row_blocks(Context<Host>& ctx, Side side, Op op, Index mb, Index nb, MatrixView<const T> V,
                             MatrixView<const T> Tf, MatrixView<T> C);
/// A := the first n columns of Q. On entry A holds V.
template <class T>
const char* form_row_blocks(Context<Host>& ctx, Index mb, Index nb, MatrixView<T> A, MatrixView<const T> Tf);
/// Returns the columns of T for an m×n matrix.
inline Index row_block_t_cols(Index m, Index n, Index mb) {
    return mb > n && mb < m ? n * ((m - n + mb - n - 1) / (mb - n)) : n;
}

/// Return the bytes of workspace of these functions, with p columns of C (p = n for the functions without C).
template <class T>
double stacked_workspace(const Stack& stack, Index p);
template <class T>
double row_blocks_workspace(Index m, Index n, Index mb, Index nb, Index p);

}  // namespace quoin::lapack
