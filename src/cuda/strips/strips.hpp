#pragma once

// Batches that are factored strip by strip, everything in one launch (strips/strips.cuh).

#include "cuda/elements/batch_entries.cuh"
#include "cuda/runtime/state.hpp"
#include "cuda/strips/size.cuh"
#include "primitives/small_batch.hpp"

namespace quoin::cuda::strips {

/// `count` m×n matrices, m > 0 and n > 0, in strips of a row of `strip_shapes`.
template <class T>
StripSize size_of(int row, Index count, Index m, Index n);

/// Factors a batch in one launch, and has `check` told. Uses at most `multiprocessors` of the device (0: all).
template <class T>
void factor(Context<Cuda>& ctx, const StripSize& size, const BatchEntries<const T>& A, const StripFactors<T>& F,
            const FiniteCheck& check, Index multiprocessors = 0);
/// to := op(Q) from, p columns. If `upper`, from is [E; 0] and has upper triangles E of k rows, or, without matrices, E
/// = I.
template <class T>
void apply(Context<Cuda>& ctx, const StripSize& size, const StripFactors<T>& F, bool transpose, Index p,
           const BatchEntries<const T>& from, bool upper, const BatchEntries<T>& to);
/// to := V and R (m×n) or R (k×n), as `factor` says, and tau (k×1) if it has memory.
template <class T>
void unpack(Context<Cuda>& ctx, const StripSize& size, const StripFactors<T>& F, Factor factor,
            const BatchEntries<T>& to, const BatchEntries<T>& tau = {});
/// Tf, k×k, := the T of each panel of the first matrix on its diagonal, zeros elsewhere.
template <class T>
void unpack_t(Context<Cuda>& ctx, const StripSize& size, const StripFactors<T>& F, MatrixView<T, Cuda> Tf);

}  // namespace quoin::cuda::strips
