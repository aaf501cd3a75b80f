#pragma once

#include <cstddef>
#include <memory>

#include "quoin/matrix.hpp"
#include "quoin/trace.hpp"

namespace quoin {

/// The device, threads, workspace and stream of a call. One context serves one calling thread at a time; make one per
/// thread.
template <class D>
class Context;

/// A number of cores and an arena of workspace.
///
/// The number of threads changes the speed, never the bits of a result: see `Plan`. The arena grows at a plan's first
/// use to the size that the plan needs, and is reused until the context dies.
template <>
class Context<Host> {
public:
    /// `threads` = 0 is OpenMP's number (OMP_NUM_THREADS, or all cores within the CPU quota), 4096 at most.
    /// Throws InvalidArgument if < 0.
    explicit Context(int threads = 0);
    Context(Context&&) noexcept;
    Context& operator=(Context&&) noexcept;
    ~Context();

    int threads() const { return threads_; }

    /// Does nothing: calls return when their work is done.
    void wait() const {}

    /// Returns the flops finished since `reset_progress`. Their share of `Plan::flops` is the progress of a call. Any
    /// thread may call it.
    double flops_done() const;
    void reset_progress();
    /// Makes the call in progress end at its next step with `Interrupted`. Any thread or signal handler may call it.
    /// The request stands until `clear_stop`.
    void request_stop() noexcept;
    void clear_stop() noexcept;

    /// Records later calls on `trace`, which must outlive the recording. Null ends it.
    void attach(Trace* trace);
    /// Returns the attached trace, or null.
    Trace* trace() const;

    /// Quoin's own use: workspace, progress and stop flag.
    struct State;
    State& state() { return *state_; }

private:
    int threads_;
    std::unique_ptr<State> state_;
};

/// B := A, both in D's memory.
///
///     copy<double>(ctx, A.view(), B.view());
template <class T, class D>
void copy(Context<D>& ctx, View<const T, D> A, View<T, D> B);
/// B := Aᵀ, both in D's memory: a row-major matrix is the transpose of a column-major one. 2mn words at the memory's
/// rate.
template <class T, class D>
void transpose(Context<D>& ctx, View<const T, D> A, View<T, D> B);
/// B := A, both in D's memory, A in either storage order.
template <class T, class D>
void load(Context<D>& ctx, Input<T, D> A, View<T, D> B) {
    A.by_rows ? transpose<T>(ctx, A.stored(), B) : copy<T>(ctx, A.stored(), B);
}

}  // namespace quoin
