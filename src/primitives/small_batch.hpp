#pragma once

// Matrices of one shape that a device factors several at once, in a format of its own.

#include <span>

#include "quoin/batch_view.hpp"

namespace quoin {

/// Which matrices of a batch: the first `count`, or those that are listed.
struct Members {
    std::span<const Index> list;
    Index count = 0;

    Index operator[](Index i) const { return list.empty() ? i : list[i]; }
};

/// The form of a factor: V and R, m×n; or R, k×n with zeros below its diagonal.
enum class Factor { VR, R };

/// The matrices of a batch: the caller's, perhaps one alone, or a level of a tree, which has many.
enum class BatchOf { Matrices, TreeLevel };

/// Whether work on one matrix of several keeps memory of its context, as a factorization does, or returns all of it.
enum class Memory { Kept, Returned };

/// `members.count` m×n matrices, k = min(m, n): reflectors, R and tau. Each device has
///
///     static bool fits(Index m, Index n, Arithmetic arithmetic);
///     static bool pays_alone(Index m, Index n, Arithmetic arithmetic);  // whether it is the best way for one matrix
///     static bool applies_alone(Index m, Index p);                      // whether it is for op(Q) C, C m×p
///     // V and R of one matrix are put in *memory, m×n, if the format is LAPACK's.
///     SmallBatch(Context<D>& ctx, Index m, Index n, Index count, Matrix<T, D>* memory = nullptr,
///                BatchOf of = BatchOf::Matrices);
///     // V, R and tau of one matrix, if the format is LAPACK's; the batch is spent then.
///     std::optional<LapackQR<T, D>> take_lapack();
///     // A = QR. Returns the first member, by its place in the batch, that has NaN or Inf, or −1. Without
///     // the check −1, and no wait.
///     Index factor(Context<D>& ctx, BatchView<const T, D> A, Members members, bool check_finite);
///     // Factors m×n matrices into the caller's memory. Factor::VR: B := V and R, other := tau, and B may be A.
///     // Factor::R: B := R and, unless it has no matrices, other := the thin Q. Writes nothing of a
///     // matrix that is found to have NaN or Inf.
///     static Index factor_to(Context<D>& ctx, Index m, Index n, BatchView<const T, D> A, Members members,
///                            bool check_finite, Factor kept, BatchView<T, D> B, BatchView<T, D> other,
///                            BatchOf of = BatchOf::Matrices);
///     void unpack(Context<D>& ctx, Factor factor, Members members, BatchView<T, D> B) const;
///     void unpack_tau(Context<D>& ctx, Members members, BatchView<T, D> tau) const;  // k×1
///     void form_q(Context<D>& ctx, Members members, BatchView<T, D> Q) const;        // m×k
///     // Q := Q [E; 0], E k×k upper triangles with zeros below. Only if Tuning<D>::has_batched_trees.
///     void form_q(Context<D>& ctx, Members members, BatchView<const T, D> E, BatchView<T, D> Q) const;
///     // to := op(Q) from; the two may be one
///     void apply_q(Context<D>& ctx, Op op, Members members, BatchView<const T, D> from, BatchView<T, D> to) const;
///     // m >= n: X := the minimiser of ‖AX − B‖, or with Op::Transpose the X of least norm with AᵀX = B; the norms
///     // of the residuals (p×1, 0 for Transpose) and κ₁(R) (1×1). All are NaN if `rcond` refuses R, as
///     // `least_squares` does, or if NaN, Inf or the range of T leave no answer. Returns whether there are such
///     // members; without `ask` false, and no wait.
///     bool solve(Context<D>& ctx, Op op, Members members, BatchView<const T, D> B, double rcond, bool ask,
///                BatchView<T, D> X, BatchView<T, D> norms, BatchView<T, D> conditions) const;
///     static bool solves(Index m, Index n);  // whether that pays
template <class T, class D>
class SmallBatch;

/// to := from, of uniform batches of one shape. Only if Tuning<D>::has_batched_trees.
template <class T, class D>
void copy_batch(Context<D>& ctx, BatchView<const T, D> from, BatchView<T, D> to);

/// A batch of one matrix, and its only member.
template <class T, class D>
BatchView<T, D> one_of(MatrixView<T, D> A) {
    return {A.data, A.rows, A.cols, A.ld, 0, 1};
}
inline constexpr Members one_member{{}, 1};

}  // namespace quoin
