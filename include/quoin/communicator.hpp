#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quoin/context.hpp"

namespace quoin {

struct Cuda;

/// Messages and words that one rank has sent and received so far. A word is one element of a view.
struct Traffic {
    Index messages_sent = 0, words_sent = 0;
    Index messages_received = 0, words_received = 0;
};

/// Cost of a call on the slowest rank, in the α-β-γ model.
struct RankCosts {
    double flops = 0;
    double messages = 0;      ///< one after the other
    double bytes = 0;         ///< of these messages
    double memory_bytes = 0;  ///< of a rank

    /// Returns the predicted seconds. `latency`: seconds a message; `bandwidth`: bytes a second between two ranks;
    /// `flop_rate`: flops a second of one rank.
    double seconds(double latency, double bandwidth, double flop_rate) const {
        return messages * latency + bytes / bandwidth + flops / flop_rate;
    }
};

/// Returns the rows of `rank` if `size` ranks share m rows evenly. If m is not a multiple of `size`, the first ranks
/// have one row more.
inline Range rows_of_rank(Index m, int size, int rank) {
    const auto first = [&](Index r) { return m / size * r + (r < m % size ? r : m % size); };
    return {first(rank), first(rank + 1)};
}

/// How `Communicator::all_reduce` joins the entries of the ranks.
enum class Reduction { Sum, Max };

/// One of `size` ranks that send each other matrices of float, double or Index, of any number of elements.
///
/// An engine carries the bytes: threads of this process (`run_ranks`), MPI (`MpiCommunicator` in quoin/mpi.hpp), or
/// NCCL between GPUs (`NcclCommunicator` in quoin/nccl.hpp). Collective operations are built from these messages here,
/// so no other part of Quoin knows the engine. Sums follow a fixed binary tree of ranks, whatever arrives first. Each
/// send blocks until its data may be changed, except for `start_send`. Sender and receiver name each other.
///
/// **GPUs.** Float and double are sent from and to the memory of a GPU, in the order of the context's work. NCCL sends
/// them from GPU to GPU, and such a message only waits for the other rank's note. The other engines copy them through
/// the host's memory.
///
/// **Notes.** A message carries either its data or a note alone, a positive number. If the work of rank r
/// fails, it sends the note r + 1 in place of every message that other ranks wait for. So no rank hangs, and all learn
/// of the failure.
///
/// One thread at a time uses a Communicator. Every call throws InvalidArgument for a rank that does not exist, and an
/// Error with ErrorCode::CommunicationFailure if a message has another size than the receiver expects, the other rank
/// has ended, or the engine reports a failure.
///
///     run_ranks(4, [](Communicator& comm) {
///         Context<Host> ctx(1);
///         Matrix<double> x(1, 1);
///         x(0, 0) = comm.rank();
///         comm.all_reduce<double>(ctx, x.view());  // 6 on every rank
///     });
class Communicator {
public:
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    virtual ~Communicator() = default;

    /// Return the number of this rank, and how many there are.
    int rank() const { return rank_; }
    int size() const { return size_; }

    /// Sends A, or only `note` if it is not 0.
    template <class T, class D>
    void send(Context<D>& ctx, View<const T, D> A, int to, int note = 0);
    /// Begins to send A, or only `note` if it is not 0, without waiting for the receiver. A must not change until
    /// `finish_sends`. MPI and threads do so for contiguous A in the host's memory; everything else is a `send`.
    template <class T, class D>
    void start_send(Context<D>& ctx, View<const T, D> A, int to, int note = 0);
    /// Waits until the data of all started sends may be changed.
    void finish_sends() { finish_started(); }
    /// Receives A from rank `from`. Returns the note. If the note is not 0, A is unchanged.
    template <class T, class D>
    int receive(Context<D>& ctx, View<T, D> A, int from);
    /// Sends A, or only `note`, to rank `other`, and receives B from it: at the same time between GPUs that NCCL
    /// connects, one after the other elsewhere. Returns the note of `other`. B is unspecified if either rank sends a
    /// note.
    template <class T, class D>
    int exchange(Context<D>& ctx, View<const T, D> A, View<T, D> B, int other, int note = 0);
    /// A := A of `root` on every rank, unless root has a note. Returns root's note. ⌈log₂ size⌉ messages one after the
    /// other.
    template <class T, class D>
    int broadcast(Context<D>& ctx, View<T, D> A, int root = 0, int note = 0);
    /// A := sum or maximum of all ranks' A, in the host's memory, with the same bits on every rank and in every run.
    /// Returns the same note on every rank: 0, or a note of one of the ranks; A is then unspecified. 2⌈log₂ size⌉
    /// messages one after the other.
    template <class T>
    int all_reduce(Context<Host>& ctx, View<T, Host> A, Reduction reduction = Reduction::Sum, int note = 0);

    /// Returns what this rank has sent and received so far.
    const Traffic& traffic() const { return traffic_; }

protected:
    Communicator(int rank, int size) : rank_(rank), size_(size) {}
    /// Send and receive the host's memory by another engine.
    static void send_bytes_by(Communicator& other, const void* data, Index bytes, int to, int note) {
        other.send_bytes(data, bytes, to, note);
    }
    static int receive_bytes_by(Communicator& other, void* data, Index bytes, int from) {
        return other.receive_bytes(data, bytes, from);
    }
    static void start_bytes_by(Communicator& other, const void* data, Index bytes, int to, int note) {
        other.start_bytes(data, bytes, to, note);
    }
    /// Send and receive GPUs' memory by another engine.
    static bool reaches_gpus_by(const Communicator& other) { return other.reaches_gpus(); }
    static void enqueue_send_by(Communicator& other, Context<Cuda>& ctx, const void* data, Index bytes, int to) {
        other.enqueue_send(ctx, data, bytes, to);
    }
    static void enqueue_receive_by(Communicator& other, Context<Cuda>& ctx, void* data, Index bytes, int from) {
        other.enqueue_receive(ctx, data, bytes, from);
    }
    static void enqueue_exchange_by(Communicator& engine, Context<Cuda>& ctx, const void* sent, void* received,
                                    Index bytes, int other) {
        engine.enqueue_exchange(ctx, sent, received, bytes, other);
    }

private:
    template <class T, class D>
    void send_contiguous(Context<D>& ctx, View<const T, D> A, int to, int note);
    template <class T, class D>
    int receive_contiguous(Context<D>& ctx, View<T, D> A, int from);

    /// Sends `bytes` of data, or no data and a note. Returns when the data may be changed.
    virtual void send_bytes(const void* data, Index bytes, int to, int note) = 0;
    /// Returns at once if the engine can. `finish_started` returns when the data of all started messages may be
    /// changed.
    virtual void start_bytes(const void* data, Index bytes, int to, int note) { send_bytes(data, bytes, to, note); }
    virtual void finish_started() {}
    /// Receives a message and returns its note. Throws CommunicationFailure if a message without a note does not have
    /// `bytes`.
    virtual int receive_bytes(void* data, Index bytes, int from) = 0;
    /// Whether the enqueue_ functions below carry the memory of GPUs. They enqueue messages on the context's stream.
    virtual bool reaches_gpus() const { return false; }
    virtual void enqueue_send(Context<Cuda>&, const void* /*data*/, Index /*bytes*/, int /*to*/) {}
    virtual void enqueue_receive(Context<Cuda>&, void* /*data*/, Index /*bytes*/, int /*from*/) {}
    virtual void enqueue_exchange(Context<Cuda>&, const void* /*sent*/, void* /*received*/, Index /*bytes*/,
                                  int /*other*/) {}
    void require_other_rank(const char* operation, int rank) const;

    int rank_, size_;
    Traffic traffic_;
};

/// Some ranks of another Communicator, in the order of `members`: rank i here is rank members[i] of `all`. It uses the
/// engine of `all`, which must outlive it. Messages of both between two ranks stay in their order. `traffic` counts
/// only the messages of this object. Every member makes one; nothing is sent for it. Throws InvalidArgument unless the
/// members are different ranks of `all`, and this one is among them.
///
///     SubCommunicator even(comm, {0, 2, 4});  // on these three ranks
class SubCommunicator final : public Communicator {
public:
    SubCommunicator(Communicator& all, std::vector<int> members);

private:
    void send_bytes(const void* data, Index bytes, int to, int note) override;
    void start_bytes(const void* data, Index bytes, int to, int note) override;
    void finish_started() override { all_.finish_sends(); }
    int receive_bytes(void* data, Index bytes, int from) override;
    bool reaches_gpus() const override;
    void enqueue_send(Context<Cuda>& ctx, const void* data, Index bytes, int to) override;
    void enqueue_receive(Context<Cuda>& ctx, void* data, Index bytes, int from) override;
    void enqueue_exchange(Context<Cuda>& ctx, const void* sent, void* received, Index bytes, int other) override;

    Communicator& all_;
    std::vector<int> members_;
};

/// Throws InvalidArgument, "rank r: " and `why`, on this rank and from the call in progress on all other ranks. For a
/// rank that cannot take part in a call of all ranks (`qr`, `DistributedQR::form_q`, …), because it lacks its rows or
/// arguments.
[[noreturn]] void fail_on_all_ranks(Context<Host>& ctx, Communicator& comm, const std::string& why);

/// Returns `mine()` of each rank, for ranks that connect their GPUs before a call. The same error is thrown on all
/// ranks if `mine` throws on one of them, or one calls `fail_on_all_ranks`, or one begins the call at once because its
/// rows are not on a GPU.
std::vector<Index> agree_on_gpus(Context<Host>& ctx, Communicator& comm, const std::function<Index()>& mine);

/// Runs f on n ranks and returns when all have ended. The ranks are n threads of this process, and the caller is rank
/// 0.
///
/// A rank that waits for a rank that has ended gets an Error. The first exception that left f is thrown again when all
/// have ended. Throws InvalidArgument unless n >= 1. Every rank computes with a context of its own: give it its share
/// of the cores.
///
///     run_ranks(4, [&](Communicator& comm) {
///         Context<Host> ctx(1);
///         auto f = qr(ctx, comm, rows_of(comm.rank()));
///     });
void run_ranks(int n, const std::function<void(Communicator&)>& f);

}  // namespace quoin
