#pragma once

// The tree of ranks for reductions and broadcasts.

#include <vector>

#include "quoin/communicator.hpp"

namespace quoin {

/// A rank's place in the binary tree of `size` ranks with the given root. Counted from the root, rank r absorbs r + 1,
/// r + 2, r + 4, …, as far as these exist and r is a multiple of twice the distance: level l of a PanelTree with fan-in
/// 2, whose domains are the ranks. Reductions go from members to heads, broadcasts from heads to members in the
/// opposite order.
struct RankTree {
    RankTree(int rank, int size, int root = 0) {
        const int place = (rank - root + size) % size;
        const auto rank_at = [&](int p) { return (p + root) % size; };
        int distance = 1;
        for (; distance < size && place % (2 * distance) == 0; distance *= 2) {
            if (place + distance < size) members.push_back(rank_at(place + distance));
        }
        if (place > 0) head = rank_at(place - distance);
    }
    std::vector<int> members;  ///< in the order of their levels
    int head = -1;             ///< none: the root
};

/// A of the root := combine(…combine(A, A of its first member)…) over the tree. `part` has A's shape, or fewer columns
/// if there are no members. A `note` of 0 becomes a member's note. `combine(part, A, member)` may set it, too.
template <class T, class D, class Combine>
void reduce(Communicator& comm, Context<D>& ctx, View<T, D> A, View<T, D> part, int root, int& note, Combine combine) {
    const RankTree tree(comm.rank(), comm.size(), root);
    for (const int member : tree.members) {
        const int heard = comm.receive<T>(ctx, part, member);
        if (note == 0) note = heard;
        if (note == 0) combine(MatrixView<const T, D>(part), A, member);
    }
    if (tree.head >= 0) comm.send<T>(ctx, A, tree.head, note);
}

/// `reduce` with A(i, j) := op(A(i, j), part(i, j)).
template <class T, class F>
void reduce_entries(Communicator& comm, Context<Host>& ctx, View<T, Host> A, View<T, Host> part, int root, int& note,
                    F op) {
    reduce<T, Host>(comm, ctx, A, part, root, note, [&](View<const T, Host> B, View<T, Host> C, int) {
        for (Index j = 0; j < C.cols; ++j) {
            for (Index i = 0; i < C.rows; ++i) C(i, j) = op(C(i, j), B(i, j));
        }
    });
}

}  // namespace quoin
