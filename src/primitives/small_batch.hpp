#pragma once

// Matrices of one shape that a device factors several at once, in a format of its own.

#include <span>

#include "quoin/batch.hpp"

namespace quoin {

/// Which matrices of a batch: the first `count`, or those that are listed.
struct Members {
    std::span<const Index> list;
    Index count = 0;

    Index operator[](Index i) const { return list.empty() ? i : list[i]; }
};

/// What is taken of a factor: V and R, m×n; or R, k×n with zeros below its diagonal.
enum class Factor { VR, R };

/// `members.count` m×n matrices, k = min(m, n): reflectors, R and tau. Each device has
///
///     static bool fits(Index m, Index n);
///     SmallBatch(Context<D>& ctx, Index m, Index n, Index count);
///     // A = QR. The first member, by its place in the batch, that has NaN or Inf, or −1; −1, without a wait, unless asked.
///     Index factor(Context<D>& ctx, BatchView<const T, D> A, Members members, bool check_finite);
///     void unpack(Context<D>& ctx, Factor factor, Members members, BatchView<T, D> B) const;
///     void unpack_tau(Context<D>& ctx, Members members, BatchView<T, D> tau) const;  // k×1
///     void form_q(Context<D>& ctx, Members members, BatchView<T, D> Q) const;        // m×k
///     // to := op(Q) from; the two may be one
///     void apply_q(Context<D>& ctx, Op op, Members members, BatchView<const T, D> from, BatchView<T, D> to) const;
template <class T, class D>
class SmallBatch;

}  // namespace quoin
