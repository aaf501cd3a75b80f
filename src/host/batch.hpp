#pragma once

// Small matrices of one shape, several at once in the lanes of the vector registers (host/kernels/lanes.hpp). A group is as many
// matrices as there are lanes: element (i, j) of all of them lies at X + (i + j·ld)·lanes.

#include <algorithm>
#include <span>

#include "host/kernels/kernels.hpp"
#include "quoin/batch.hpp"

namespace quoin::host {

/// Which matrices of a batch have one shape: the first `count`, or those that are listed.
struct Members {
    std::span<const Index> list;
    Index count = 0;

    Index operator[](Index i) const { return list.empty() ? i : list[i]; }
};

/// The memory of groups of m×n matrices.
struct LaneShape {
    LaneShape(Index m_, Index n_, Index lanes_) : m(m_), n(n_), k(std::min(m_, n_)), ld(m_ | 1), lanes(lanes_) {}
    Index groups(Index count) const { return (count + lanes - 1) / lanes; }
    /// Elements of X and of tau, a group.
    Index elements() const { return ld * n * lanes; }
    Index taus() const { return k * lanes; }

    Index m, n, k;
    Index ld;  ///< odd, so that columns do not share few lines of a cache
    Index lanes;
};

/// X and tau := V, R and tau of the members. Returns the first one, by its place in the batch, that has NaN or Inf, or −1.
template <class T>
Index factor_batch(Context<Host>& ctx, const LaneShape& shape, BatchView<const T> A, Members members, T* X, T* tau);

/// What is taken of V and R: both, or R, k×n with zeros below its diagonal.
enum class Factor { VR, R };
template <class T>
void unpack_batch(Context<Host>& ctx, const LaneShape& shape, const T* X, Factor factor, Members members, BatchView<T> B);
template <class T>
void unpack_tau(Context<Host>& ctx, const LaneShape& shape, const T* tau, Members members, BatchView<T> B);

/// Q := the thin Q, m×k.
template <class T>
void form_q_batch(Context<Host>& ctx, const LaneShape& shape, const T* X, const T* tau, Members members, BatchView<T> Q);

/// C := op(Q) C.
template <class T>
void apply_q_batch(Context<Host>& ctx, const LaneShape& shape, const T* X, const T* tau, Op op, Members members, BatchView<T> C);

}  // namespace quoin::host
