#pragma once

// Batches of matrices of few columns and many rows, a cluster of blocks a matrix (small/cluster_per_matrix.cuh).

#include "cuda/elements/batch_entries.cuh"
#include "cuda/runtime/state.hpp"

namespace quoin::cuda::rows {

/// Factors a batch in one launch by the kernel of `row` of `cluster_rows`, and has `check` told.
template <class T>
void factor(Context<Cuda>& ctx, int row, const BatchSize& size, const BatchEntries<const T>& A,
            const BatchOutputs<T>& out, const FiniteCheck& check);
/// to := op(Q) from, p columns, of V and R in X; as the kernel says.
template <class T>
void apply(Context<Cuda>& ctx, const BatchSize& size, const T* X, const T* tau, bool transpose, Index p,
           const BatchEntries<const T>& from, bool upper, const BatchEntries<T>& to);

}  // namespace quoin::cuda::rows
