#include "quoin/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/rank_tree.hpp"

namespace quoin {

void Communicator::require_other_rank(const char* operation, int rank) const {
    if (rank >= 0 && rank < size_ && rank != rank_) return;
    throw InvalidArgument(fmt::format("{}: rank {} of {} has no other rank {}", operation, rank_, size_, rank));
}

template <class T, class D>
void Communicator::send(Context<D>& ctx, View<const T, D> A, int to, int note) {
    require_other_rank("send", to);
    const Index words = note == 0 ? A.rows * A.cols : 0;
    if (words > 0 && A.ld != A.rows && A.cols > 1) {
        Matrix<T, D> packed(ctx, A.rows, A.cols);
        for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, packed.view().at(0, j));
        return send<T, D>(ctx, packed.view(), to);
    }
    send_bytes(A.data, words * Index{sizeof(T)}, to, note);
    traffic_.messages_sent += 1;
    traffic_.words_sent += words;
}

template <class T, class D>
int Communicator::receive(Context<D>& ctx, View<T, D> A, int from) {
    require_other_rank("receive", from);
    const Index words = A.rows * A.cols;
    if (words > 0 && A.ld != A.rows && A.cols > 1) {
        Matrix<T, D> packed(ctx, A.rows, A.cols);
        const int note = receive<T, D>(ctx, packed.view(), from);
        if (note != 0) return note;
        for (Index j = 0; j < A.cols; ++j) std::copy_n(packed.view().at(0, j), A.rows, A.at(0, j));
        return 0;
    }
    const int note = receive_bytes(A.data, words * Index{sizeof(T)}, from);
    traffic_.messages_received += 1;
    if (note == 0) traffic_.words_received += words;
    return note;
}

template <class T, class D>
int Communicator::broadcast(Context<D>& ctx, View<T, D> A, int root, int note) {
    if (root < 0 || root >= size_) require_other_rank("broadcast", root);
    const RankTree tree(rank_, size_, root);
    if (tree.head >= 0) note = receive<T, D>(ctx, A, tree.head);
    for (auto member = tree.members.rbegin(); member != tree.members.rend(); ++member)
        send<T, D>(ctx, A, *member, note);
    return note;
}

template <class T, class D>
int Communicator::all_reduce(Context<D>& ctx, View<T, D> A, Reduction reduction, int note) {
    Matrix<T, D> part(ctx, A.rows, RankTree(rank_, size_).members.empty() ? 0 : A.cols);
    reduce_entries<T, D>(*this, ctx, A, part.view(), 0, note,
                         [&](T a, T b) { return reduction == Reduction::Sum ? a + b : std::max(a, b); });
    return broadcast<T, D>(ctx, A, 0, note);
}

#define QUOIN_INSTANTIATE(T)                                                                        \
    template void Communicator::send<T, Host>(Context<Host>&, MatrixView<const T, Host>, int, int); \
    template int Communicator::receive<T, Host>(Context<Host>&, MatrixView<T, Host>, int);          \
    template int Communicator::broadcast<T, Host>(Context<Host>&, MatrixView<T, Host>, int, int);   \
    template int Communicator::all_reduce<T, Host>(Context<Host>&, MatrixView<T, Host>, Reduction, int);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
QUOIN_INSTANTIATE(Index)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
