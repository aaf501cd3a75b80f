// Collective calls and their trees, for any engine; communicators of some of the ranks.

#include "quoin/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/rank_tree.hpp"
#include "devices.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "quoin/cuda.hpp"
#endif

namespace quoin {

void Communicator::require_other_rank(const char* operation, int rank) const {
    if (rank >= 0 && rank < size_ && rank != rank_) return;
    throw InvalidArgument(fmt::format("{}: rank {} is not another rank than {} of {}", operation, rank, rank_, size_));
}

namespace {

template <class T, class D>
bool is_contiguous(MatrixView<T, D> A) {
    return A.ld == A.rows || A.cols <= 1 || A.rows == 0;
}
template <class T, class D>
void copy_entries(Context<D>& ctx, View<const T, D> A, View<T, D> B) {
    if constexpr (std::is_same_v<T, Index>) {
        for (Index j = 0; j < A.cols; ++j) std::copy_n(A.at(0, j), A.rows, B.at(0, j));
    } else {
        copy<T>(ctx, A, B);
    }
}

}  // namespace

template <class T, class D>
void Communicator::send_contiguous(Context<D>& ctx, View<const T, D> A, int to, int note) {
    const Index bytes = note == 0 ? A.rows * A.cols * Index{sizeof(T)} : 0;
    if constexpr (std::is_same_v<D, Host>) {
        send_bytes(A.data, bytes, to, note);
    } else if (reaches_gpus() || bytes == 0) {
        send_bytes(nullptr, 0, to, note);
        if (bytes > 0) enqueue_send(ctx, A.data, bytes, to);
    } else {
        const Matrix<T, Host> there = copy_to_host<T>(ctx, A);
        send_bytes(there.data(), bytes, to, 0);
    }
}

template <class T, class D>
int Communicator::receive_contiguous(Context<D>& ctx, View<T, D> A, int from) {
    const Index bytes = A.rows * A.cols * Index{sizeof(T)};
    if constexpr (std::is_same_v<D, Host>) {
        return receive_bytes(A.data, bytes, from);
    } else if (reaches_gpus() || bytes == 0) {
        const int note = receive_bytes(nullptr, 0, from);
        if (note == 0 && bytes > 0) enqueue_receive(ctx, A.data, bytes, from);
        return note;
    } else {
        Matrix<T, Host> here(A.rows, A.cols);
        const int note = receive_bytes(here.data(), bytes, from);
        if (note == 0) copy_to_device<T>(ctx, here.view(), A);
        return note;
    }
}

template <class T, class D>
void Communicator::send(Context<D>& ctx, View<const T, D> A, int to, int note) {
    require_other_rank("send", to);
    const Span span(ctx, "send");
    const Index words = note == 0 ? A.rows * A.cols : 0;
    if (words > 0 && !is_contiguous(A)) {
        Matrix<T, D> packed(ctx, A.rows, A.cols);
        copy_entries<T>(ctx, A, packed.view());
        send_contiguous<T, D>(ctx, packed.view(), to, 0);
    } else {
        send_contiguous<T, D>(ctx, A, to, note);
    }
    traffic_.messages_sent += 1;
    traffic_.words_sent += words;
}

template <class T, class D>
void Communicator::start_send(Context<D>& ctx, View<const T, D> A, int to, int note) {
    if constexpr (std::is_same_v<D, Host>) {
        if (is_contiguous(A)) {
            require_other_rank("start_send", to);
            const Index words = note == 0 ? A.rows * A.cols : 0;
            start_bytes(A.data, words * Index{sizeof(T)}, to, note);
            traffic_.messages_sent += 1;
            traffic_.words_sent += words;
            return;
        }
    }
    send<T, D>(ctx, A, to, note);
}

template <class T, class D>
int Communicator::receive(Context<D>& ctx, View<T, D> A, int from) {
    require_other_rank("receive", from);
    const Span span(ctx, "wait");
    int note = 0;
    if (!is_contiguous(A)) {
        Matrix<T, D> packed(ctx, A.rows, A.cols);
        note = receive_contiguous<T, D>(ctx, packed.view(), from);
        if (note == 0) copy_entries<T>(ctx, std::as_const(packed).view(), A);
    } else {
        note = receive_contiguous<T, D>(ctx, A, from);
    }
    traffic_.messages_received += 1;
    if (note == 0) traffic_.words_received += A.rows * A.cols;
    return note;
}

template <class T, class D>
int Communicator::exchange(Context<D>& ctx, View<const T, D> A, View<T, D> B, int other, int note) {
    require_other_rank("exchange", other);
    if constexpr (!std::is_same_v<D, Host>) {
        if (const Index words = A.rows * A.cols; reaches_gpus() && words > 0 && is_contiguous(A) && is_contiguous(B)) {
            const Span span(ctx, "exchange");
            if (rank_ < other) send_bytes(nullptr, 0, other, note);
            const int heard = receive_bytes(nullptr, 0, other);
            if (rank_ > other) send_bytes(nullptr, 0, other, note);
            const bool is_data = note == 0 && heard == 0;
            if (is_data) enqueue_exchange(ctx, A.data, B.data, words * Index{sizeof(T)}, other);
            traffic_.messages_sent += 1;
            traffic_.messages_received += 1;
            traffic_.words_sent += is_data ? words : 0;
            traffic_.words_received += is_data ? words : 0;
            return heard;
        }
    }
    if (rank_ < other) send<T, D>(ctx, A, other, note);
    const int heard = receive<T, D>(ctx, B, other);
    if (rank_ > other) send<T, D>(ctx, A, other, note);
    return heard;
}

template <class T, class D>
int Communicator::broadcast(Context<D>& ctx, View<T, D> A, int root, int note) {
    if (root < 0 || root >= size_) require_other_rank("broadcast", root);
    const Span span(ctx, "broadcast");
    const RankTree tree(rank_, size_, root);
    if (tree.head >= 0) note = receive<T, D>(ctx, A, tree.head);
    for (auto member = tree.members.rbegin(); member != tree.members.rend(); ++member)
        send<T, D>(ctx, A, *member, note);
    return note;
}

template <class T>
int Communicator::all_reduce(Context<Host>& ctx, View<T, Host> A, Reduction reduction, int note) {
    const Span span(ctx, "reduce");
    Matrix<T> part(ctx, A.rows, RankTree(rank_, size_).members.empty() ? 0 : A.cols);
    reduce_entries<T>(*this, ctx, A, part.view(), 0, note,
                      [&](T a, T b) { return reduction == Reduction::Sum ? a + b : std::max(a, b); });
    return broadcast<T, Host>(ctx, A, 0, note);
}

namespace {

/// The place of this rank among the members, which are checked.
int place_of(const Communicator& all, const std::vector<int>& members) {
    std::vector<char> seen(all.size());
    int place = -1;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const int rank = members[i];
        if (rank < 0 || rank >= all.size() || std::exchange(seen[rank], 1))
            throw InvalidArgument(
                fmt::format("SubCommunicator: members must be different ranks of {}, and one is {}", all.size(), rank));
        if (rank == all.rank()) place = static_cast<int>(i);
    }
    if (place < 0) throw InvalidArgument(fmt::format("SubCommunicator: rank {} is no member", all.rank()));
    return place;
}

}  // namespace

SubCommunicator::SubCommunicator(Communicator& all, std::vector<int> members)
    : Communicator(place_of(all, members), static_cast<int>(members.size())), all_(all), members_(std::move(members)) {}
void SubCommunicator::send_bytes(const void* data, Index bytes, int to, int note) {
    send_bytes_by(all_, data, bytes, members_[to], note);
}
void SubCommunicator::start_bytes(const void* data, Index bytes, int to, int note) {
    start_bytes_by(all_, data, bytes, members_[to], note);
}
int SubCommunicator::receive_bytes(void* data, Index bytes, int from) {
    return receive_bytes_by(all_, data, bytes, members_[from]);
}
bool SubCommunicator::reaches_gpus() const { return reaches_gpus_by(all_); }
void SubCommunicator::enqueue_send(Context<Cuda>& ctx, const void* data, Index bytes, int to) {
    enqueue_send_by(all_, ctx, data, bytes, members_[to]);
}
void SubCommunicator::enqueue_receive(Context<Cuda>& ctx, void* data, Index bytes, int from) {
    enqueue_receive_by(all_, ctx, data, bytes, members_[from]);
}
void SubCommunicator::enqueue_exchange(Context<Cuda>& ctx, const void* sent, void* received, Index bytes, int other) {
    enqueue_exchange_by(all_, ctx, sent, received, bytes, members_[other]);
}

#define QUOIN_INSTANTIATE(T, D)                                                                                 \
    template void Communicator::send<T, D>(Context<D>&, MatrixView<const T, D>, int, int);                      \
    template void Communicator::start_send<T, D>(Context<D>&, MatrixView<const T, D>, int, int);                \
    template int Communicator::receive<T, D>(Context<D>&, MatrixView<T, D>, int);                               \
    template int Communicator::exchange<T, D>(Context<D>&, MatrixView<const T, D>, MatrixView<T, D>, int, int); \
    template int Communicator::broadcast<T, D>(Context<D>&, MatrixView<T, D>, int, int);
QUOIN_INSTANTIATE(float, Host)
QUOIN_INSTANTIATE(double, Host)
QUOIN_INSTANTIATE(Index, Host)
#ifdef QUOIN_HAVE_CUDA
QUOIN_INSTANTIATE(float, Cuda)
QUOIN_INSTANTIATE(double, Cuda)
#endif
#undef QUOIN_INSTANTIATE

#define QUOIN_INSTANTIATE(T) \
    template int Communicator::all_reduce<T>(Context<Host>&, MatrixView<T, Host>, Reduction, int);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
QUOIN_INSTANTIATE(Index)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
