#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "quoin/quoin.hpp"

namespace quoin::python {

namespace nb = nanobind;

/// Returns f(), which takes the GIL or runs Python code. Before Python 3.14 a thread that asks for the GIL while the interpreter ends is
/// unwound, and C++ would answer with SIGABRT. The thread waits here for the end of the process instead, as from 3.14 on.
template <class F>
auto with_python_alive(const F& f) {
#ifdef __GLIBCXX__
    try {
        return f();
    } catch (abi::__forced_unwind&) {
        for (;;) pause();
    }
#else
    return f();
#endif
}

/// The calling thread is without the GIL while one lives.
class GilReleased {
public:
    GilReleased() : state_(PyEval_SaveThread()) {}
    GilReleased(const GilReleased&) = delete;
    ~GilReleased() {
        with_python_alive([this] { PyEval_RestoreThread(state_); });
    }

private:
    PyThreadState* state_;
};

/// Returns f(), called with the GIL. The calling thread is without it, and need not be one of Python's.
template <class F>
auto with_gil(const F& f) {
    struct Acquired {
        PyGILState_STATE state = with_python_alive(PyGILState_Ensure);
        ~Acquired() { PyGILState_Release(state); }
    };
    const Acquired acquired;
    return with_python_alive(f);
}

/// The calling thread's context, taken for one call: its workspace serves all calls of the thread with as many threads,
/// and one more context those with one. A signal handler that calls Quoin again, while a call of the same thread runs, gets
/// a context of its own.
class ContextLease {
public:
    explicit ContextLease(int threads) : idle_(idle(threads == 1)), ctx_(std::move(idle_)) {
        if (!ctx_ || threads < 0 || ctx_->threads() != wanted(threads)) {
            ctx_ = std::make_unique<Context<Host>>(threads);
        }
        ctx_->clear_stop();
    }
    ~ContextLease() { idle_ = std::move(ctx_); }
    ContextLease(const ContextLease&) = delete;
    ContextLease& operator=(const ContextLease&) = delete;

    Context<Host>& get() { return *ctx_; }

private:
    static int wanted(int threads);
    static std::unique_ptr<Context<Host>>& idle(bool single) {
        static thread_local std::unique_ptr<Context<Host>> contexts[2];
        return contexts[single];
    }
    std::unique_ptr<Context<Host>>& idle_;
    std::unique_ptr<Context<Host>> ctx_;
};

/// Runs `work()` without the GIL. Work that `lasts` is done beside the calling thread, which looks for signals meanwhile:
/// Python runs their handlers on its main thread only. What a handler raises has `stop()` called and is thrown.
template <class Work, class Stop>
void watch_signals(bool lasts, Work&& work, Stop&& stop) {
    constexpr auto poll_interval = std::chrono::milliseconds(50);

    if (!lasts) {
        const GilReleased released;
        work();
        return;
    }

    std::mutex mutex;
    std::condition_variable finished;
    bool done = false;
    std::exception_ptr failure;
    std::optional<nb::python_error> raised;
    {
        const GilReleased released;
        std::thread worker([&] {
            try {
                work();
            } catch (...) {
                failure = std::current_exception();
            }
            const std::lock_guard lock(mutex);
            done = true;
            finished.notify_one();
        });
        std::unique_lock lock(mutex);
        while (!finished.wait_for(lock, poll_interval, [&] { return done; })) {
            lock.unlock();
            if (!raised) {
                with_gil([&] {
                    if (PyErr_CheckSignals() != 0) raised.emplace();
                });
                if (raised) stop();
            }
            lock.lock();
        }
        lock.unlock();
        worker.join();
    }
    if (raised) throw nb::python_error(std::move(*raised));
    if (failure) std::rethrow_exception(failure);
}

/// Where a call on D computes, as Python says it: a number of threads (0: the library's choice), or a `CudaCall`.
template <class D>
struct WhereOf {
    using Type = int;
};
template <class D>
using Where = typename WhereOf<D>::Type;

/// What the results of one call share with later ones, if they are objects of the extension module: on a GPU the context,
/// on a host nothing.
template <class D>
struct Home {
    explicit Home(const Where<D>&) {}
};

/// An object of the library with the home of its memory.
template <class Object, class D>
struct Held {
    Home<D> home;
    Object object;
};

/// Of R and the thin Q.
inline double flops_of_qr(Index m, Index n) { return 4.0 * m * n * std::min(m, n); }

/// Flops that take the time of a copy.
inline double flops_of_copy(Index m, Index n) { return 10.0 * m * n; }

/// One where the caller leaves it open (0) and more would not pay: a team's wake-ups cost more than they bring, and on a
/// machine with other work far more. Measured at 4 cores: a square matrix gains from 300 x 300 on, a tall one earlier.
inline int where_for(int threads, Index m, Index n) {
    const double worth_a_team = m < 4 * n ? 1e8 : 1e7;
    return threads == 0 && flops_of_qr(m, n) < worth_a_team ? 1 : threads;
}

/// Runs `work(ctx)`, which is of `flops`, without the GIL.
template <class Work>
void run_released(const Home<Host>&, int threads, double flops, Work&& work) {
    constexpr double flops_without_signals = 5e8;  // some tens of milliseconds of one core

    ContextLease lease(threads);
    Context<Host>& ctx = lease.get();
    watch_signals(
        flops >= flops_without_signals, [&] { work(ctx); }, [&] { ctx.request_stop(); });
}

/// What `work(ctx)` returns, by `run_released`.
template <class D, class Work>
auto result_of(const Home<D>& home, const Where<D>& where, double flops, Work&& work) {
    std::optional<std::invoke_result_t<Work&, Context<D>&>> result;
    run_released(home, where, flops, [&](Context<D>& ctx) { result.emplace(work(ctx)); });
    return std::move(*result);
}

/// While it lives, code of the caller's in the middle of a call finds what it would between calls: on a GPU its own current
/// device, on a host nothing.
template <class D>
struct CallersCode {
    explicit CallersCode(const Home<D>&) {}
};

/// Has Quoin's exceptions raised as the classes of quoin._errors.
void register_errors();

}  // namespace quoin::python
