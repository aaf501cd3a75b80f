// Ranks that are threads of one process. A message is a rendezvous: the receiver copies out of the sender's memory.

#include <fmt/format.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "quoin/communicator.hpp"

namespace quoin {
namespace {

/// The messages from each rank to each other one, and who has ended.
class Exchange {
public:
    explicit Exchange(int size) : size_(size), wake_(size), messages_(size * size), ended_(size) {}

    void send(int from, int to, const void* data, Index bytes, int note) {
        start(from, to, data, bytes, note);
        finish(from, to);
    }
    void start(int from, int to, const void* data, Index bytes, int note) {
        {
            const std::lock_guard lock(mutex_);
            messages_[from * size_ + to].push_back({data, bytes, note});
        }
        wake_[to].notify_one();  // who wakes would otherwise wait for the lock
    }
    /// Waits until all of them are received.
    void finish(int from, int to) {
        std::unique_lock lock(mutex_);
        const auto& messages = messages_[from * size_ + to];
        wake_[from].wait(lock, [&] { return messages.empty() || ended_[to]; });
        if (!messages.empty()) throw_ended(to, from);
    }

    int receive(int from, int to, void* data, Index bytes) {
        std::unique_lock lock(mutex_);
        auto& messages = messages_[from * size_ + to];
        wake_[to].wait(lock, [&] { return !messages.empty() || ended_[from]; });
        if (messages.empty()) throw_ended(from, to);
        const Message found = messages.front();
        const bool fits = found.note != 0 || found.bytes == bytes;
        if (fits && found.bytes > 0) {
            lock.unlock();
            std::memcpy(data, found.data, static_cast<std::size_t>(found.bytes));
            lock.lock();
        }
        messages.pop_front();
        lock.unlock();
        wake_[from].notify_one();
        if (fits) return found.note;
        throw Error(ErrorCode::CommunicationFailure,
                    fmt::format("rank {} expects {} bytes from rank {}, which sends {}", to, bytes, from, found.bytes));
    }

    /// `failure` is null where the rank has returned.
    void end(int rank, std::exception_ptr failure) {
        const std::lock_guard lock(mutex_);
        ended_[rank] = true;
        if (!failure_) failure_ = failure;
        for (auto& wake : wake_) wake.notify_one();
    }

    /// Returns the exception of the rank that failed first.
    std::exception_ptr failure() const { return failure_; }

private:
    struct Message {
        const void* data = nullptr;
        Index bytes = 0;
        int note = 0;
    };
    [[noreturn]] static void throw_ended(int rank, int waiting) {
        throw Error(ErrorCode::CommunicationFailure,
                    fmt::format("rank {} has ended, and rank {} waits for it", rank, waiting));
    }

    const int size_;
    std::mutex mutex_;
    std::vector<std::condition_variable> wake_;  // one of each rank, which waits for one message at a time
    std::vector<std::deque<Message>> messages_;  // from each rank to each other one, in their order
    std::vector<char> ended_;
    std::exception_ptr failure_;
};

class ThreadCommunicator final : public Communicator {
public:
    ThreadCommunicator(Exchange& exchange, int rank, int size) : Communicator(rank, size), exchange_(exchange) {}

private:
    void send_bytes(const void* data, Index bytes, int to, int note) override {
        exchange_.send(rank(), to, data, bytes, note);
    }
    void start_bytes(const void* data, Index bytes, int to, int note) override {
        exchange_.start(rank(), to, data, bytes, note);
    }
    void finish_started() override {
        for (int to = 0; to < size(); ++to) exchange_.finish(rank(), to);
    }
    int receive_bytes(void* data, Index bytes, int from) override {
        return exchange_.receive(from, rank(), data, bytes);
    }

    Exchange& exchange_;
};

}  // namespace

void run_ranks(int n, const std::function<void(Communicator&)>& f) {
    if (n < 1) throw InvalidArgument(fmt::format("run_ranks: n must be at least 1, and is {}", n));
    Exchange exchange(n);
    const auto run = [&](int rank) {
        std::exception_ptr failure;
        try {
            ThreadCommunicator comm(exchange, rank, n);
            f(comm);
        } catch (...) {
            failure = std::current_exception();
        }
        exchange.end(rank, failure);
    };
    std::vector<std::thread> threads;
    int started = 1;
    try {
        threads.reserve(n - 1);
        for (; started < n; ++started) threads.emplace_back(run, started);
    } catch (...) {
        for (; started < n; ++started) exchange.end(started, std::current_exception());
    }
    run(0);
    for (std::thread& thread : threads) thread.join();
    if (exchange.failure()) std::rethrow_exception(exchange.failure());
}

}  // namespace quoin
