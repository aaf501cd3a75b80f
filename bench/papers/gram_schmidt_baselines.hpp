#pragma once

// Modified Gram-Schmidt as Brandes, Arnold, Soddemann and Reith (2012) have it, in place of Q = A: 2mn² flops, bound by
// the memory except for the last. Baselines of `quoin bench paper gram-schmidt`: they check and scale nothing.

#include "quoin/matrix.hpp"

namespace quoin::bench {

/// Listing 1, element by element, on one core.
template <class T>
void mgs_elementwise(MatrixView<T> Q, MatrixView<T> R);

/// Listing 3: GEMV, SCAL and GER of the BLAS that Quoin uses.
template <class T>
void mgs_blas2(MatrixView<T> Q, MatrixView<T> R);

/// Section 3: the loops over the columns to the right shared out among `threads`, vectors by Quoin's kernels, which
/// stand for what the paper's best compiler made of them.
template <class T>
void mgs_unblocked(MatrixView<T> Q, MatrixView<T> R, int threads);

/// Figure 3: b columns at a time; each column to the right is projected away from all of them while it is in cache. The
/// dot products are with the columns as they were before, which are saved.
template <class T>
void mgs_blocked(MatrixView<T> Q, MatrixView<T> R, Index b, int threads);

}  // namespace quoin::bench
