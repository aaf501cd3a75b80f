#pragma once

// Work that overlaps with other work: on the side stream, and while the host waits.

#include <functional>
#include <utility>

#include "primitives.hpp"

namespace quoin {

/// Runs work on the side stream: concurrently with the context's next work on a GPU, immediately on the host. Joined at
/// the end of the scope, whatever ends it, because memory given back on `ctx` may still be in use there.
template <class D>
class SideWork {
public:
    explicit SideWork(Context<D>& ctx) : ctx_(ctx), side_(side_stream(ctx)) {}
    SideWork(const SideWork&) = delete;
    ~SideWork() {
        try {
            join();
        } catch (...) {
        }
    }
    /// Returns the side stream. Its next work runs after all work enqueued on the context.
    Context<D>& fork() { return side_stream(ctx_); }
    void join() { wait_for(ctx_, side_); }

private:
    Context<D>& ctx_;
    Context<D>& side_;
};

/// Work that is enqueued once, after a chain of steps and before the host waits for the certificate of the chain. So
/// the device computes while the host waits.
class OverlappedWork {
public:
    explicit OverlappedWork(std::function<void()> work = {}) : work_(std::move(work)) {}
    explicit operator bool() const { return static_cast<bool>(work_); }
    void operator()() {
        if (const auto work = std::exchange(work_, {})) work();
    }

private:
    std::function<void()> work_;
};

}  // namespace quoin
