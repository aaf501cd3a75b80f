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

/// Returns f(), which takes the GIL or runs Python code. Before Python 3.14, a thread that requests the GIL while the
/// interpreter ends is unwound, and C++ would raise SIGABRT. Here the thread waits for the end of the process instead,
/// as in Python 3.14.
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

/// Releases the GIL of the calling thread for its own lifetime.
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

/// Returns f(), called with the GIL. The calling thread does not hold the GIL, and need not be a thread of Python.
template <class F>
auto with_gil(const F& f) {
    struct Acquired {
        PyGILState_STATE state = with_python_alive(PyGILState_Ensure);
        ~Acquired() { PyGILState_Release(state); }
    };
    const Acquired acquired;
    return with_python_alive(f);
}

/// Returns the result of Python's `function`, called with `arguments`. If the interpreter ends meanwhile, the thread
/// waits in this call, so that no destructor between here and the caller drops a reference without the GIL.
inline nb::object call_python(nb::handle function, const nb::tuple& arguments) {
    PyObject* const result = with_python_alive([&] { return PyObject_Call(function.ptr(), arguments.ptr(), nullptr); });
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
}

/// A context of the calling thread, taken for one call. The thread keeps two contexts, with their workspaces, for later
/// calls: one for calls with one thread, and one for calls with the last other number of threads. A signal handler that
/// calls Quoin during a call of its thread gets its own context.
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

/// The caller's function that is told the share of `flops` that is done, or None.
struct Progress {
    nb::object callback = nb::none();
    double flops = 1;

    bool is_told() const { return !callback.is_none(); }
    void tell(double done) const {
        if (is_told()) call_python(callback, nb::make_tuple(std::min(1.0, done / flops)));
    }
};

/// Runs `work()` without the GIL. If the work `lasts`, another thread does it. The calling thread looks for signals
/// meanwhile, because Python runs their handlers on its main thread only, and calls `tell()`. If a handler or `tell`
/// raises an exception, calls `stop()`, and throws the exception after the work has ended.
template <class Work, class Stop, class Tell>
void watch_signals(bool lasts, Work&& work, Stop&& stop, Tell&& tell) {
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
                    try {
                        if (PyErr_CheckSignals() != 0) throw nb::python_error();
                        tell();
                    } catch (nb::python_error& error) {
                        raised.emplace(std::move(error));
                    }
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

/// The place where a call on D computes, as Python gives it: a number of threads (0: the library's choice), or a
/// `CudaCall`.
template <class D>
struct WhereOf {
    using Type = int;
};
template <class D>
using Where = typename WhereOf<D>::Type;

/// The part of a call that its results keep for later calls, if they are objects of the extension module. On a GPU it
/// is the context, on a host nothing.
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

/// Returns the flops of R and the thin Q.
inline double flops_of_qr(Index m, Index n) { return 4.0 * m * n * std::min(m, n); }

/// Returns the number of flops that take the time of a copy.
inline double flops_of_copy(Index m, Index n) { return 10.0 * m * n; }

/// Returns 1 thread if the caller leaves the number open (0) and more would not pay, otherwise `threads`. Waking a team
/// costs more than it gains for small matrices, and far more on a machine with other work. Measured on 4 cores: square
/// matrices gain from 300 x 300 on, tall ones earlier.
inline int where_for(int threads, Index m, Index n) {
    const double worth_a_team = m < 4 * n ? 1e8 : 1e7;
    return threads == 0 && flops_of_qr(m, n) < worth_a_team ? 1 : threads;
}

/// Runs `work(ctx)`, which takes `flops`, without the GIL.
template <class Work>
void run_released(const Home<Host>&, int threads, double flops, Work&& work, const Progress& progress = {}) {
    constexpr double flops_without_signals = 5e8;  // some tens of milliseconds of one core

    ContextLease lease(threads);
    Context<Host>& ctx = lease.get();
    ctx.reset_progress();
    watch_signals(
        progress.is_told() || flops >= flops_without_signals, [&] { work(ctx); }, [&] { ctx.request_stop(); },
        [&] { progress.tell(ctx.flops_done()); });
    progress.tell(progress.flops);
}

/// Returns the result of `work(ctx)`, run by `run_released`.
template <class D, class Work>
auto result_of(const Home<D>& home, const Where<D>& where, double flops, Work&& work, const Progress& progress = {}) {
    std::optional<std::invoke_result_t<Work&, Context<D>&>> result;
    run_released(
        home, where, flops, [&](Context<D>& ctx) { result.emplace(work(ctx)); }, progress);
    return std::move(*result);
}

/// Returns the object made by `make(ctx)`, with its home.
template <class D, class Make>
auto held(const Where<D>& where, double flops, Make&& make, const Progress& progress = {}) {
    const Home<D> home(where);
    return Held<std::invoke_result_t<Make&, Context<D>&>, D>{home, result_of(home, where, flops, make, progress)};
}

/// While it lives, the caller's code that runs in the middle of a call finds the same state as between calls. On a GPU
/// it restores the caller's current device, on a host it does nothing.
template <class D>
struct CallersCode {
    explicit CallersCode(const Home<D>&) {}
};

/// Has Quoin's exceptions raised as the classes of quoin._errors.
void register_errors();

}  // namespace quoin::python
