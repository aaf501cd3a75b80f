#pragma once

// Modified Gram-Schmidt on a GPU as Brandes, Arnold, Soddemann and Reith (2012) have it, in place of Q = A: 2mn² flops,
// bound by the memory. Baselines of `quoin bench paper gram-schmidt` on a GPU; they check nothing and scale
// nothing.

#include "quoin/cuda.hpp"

namespace quoin::bench {

/// Threads of a block: nx along a column, for ny columns. nx is a power of two, nx·ny at most 1024.
struct BlockShape {
    int nx, ny;
};
/// Where the kernels read q_i and row i of R: from memory for each use, or through a copy in shared memory.
enum class Access { Direct, Shared };

/// Listings 6 and 7: r_ij := q_iᵀq_j for j >= i, r_ii := √r_ii. Enqueued.
template <class T>
void dot_products(Context<Cuda>& ctx, MatrixView<const T, Cuda> Q, MatrixView<T, Cuda> R, Index i, BlockShape shape,
                  Access access);

/// Listings 4 and 5: q_j := q_j − r_ij q_i for j > i. Enqueued.
template <class T>
void orthogonalize(Context<Cuda>& ctx, MatrixView<T, Cuda> Q, MatrixView<const T, Cuda> R, Index i, BlockShape shape,
                   Access access);

/// Their code for the GPU: both, and the scalings between, column by column. Enqueued.
template <class T>
void mgs_native(Context<Cuda>& ctx, MatrixView<T, Cuda> Q, MatrixView<T, Cuda> R, BlockShape dots, Access dots_access,
                BlockShape updates, Access updates_access);

/// Listing 3 over cuBLAS: GEMV, SCAL and GER. Enqueued.
template <class T>
void mgs_cublas(Context<Cuda>& ctx, MatrixView<T, Cuda> Q, MatrixView<T, Cuda> R);

}  // namespace quoin::bench
