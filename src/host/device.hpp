#pragma once

// The types that the contract leaves to a device.

#include <chrono>
#include <new>

#include "primitives.hpp"

namespace quoin {

template <class T>
struct SumOf<T, Host> {
    using Type = T;
};

template <>
class Event<Host> {
public:
    void record(Context<Host>&) {}
    template <class D>
    void precede(Context<D>&) const {}
    void wait() const {}
};

template <>
Context<Host>& copy_in_stream(Context<Host>& ctx);  // declared before its first use where sources are compiled as one

template <>
class WorkTimer<Host> {
public:
    explicit WorkTimer(Context<Host>&) {}
    void stop() { stop_ = Clock::now(); }
    double seconds() const { return std::chrono::duration<double>(stop_ - start_).count(); }

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now(), stop_ = start_;
};

template <>
class Span<Host> {
public:
    explicit Span(const Context<Host>& ctx, const char* name, Index step = -1, Trace::Row row = Trace::Row::Host)
        : Span(ctx.trace(), name, step, row) {}
    /// Records on `trace` a span of work that runs concurrently with a context's.
    explicit Span(Trace* trace, const char* name, Index step = -1, Trace::Row row = Trace::Row::Host)
        : trace_(trace), name_(name), step_(step), row_(row), begin_(trace_ ? trace_->now() : 0) {}
    Span(const Span&) = delete;
    ~Span() {
        if (!trace_) return;
        try {
            trace_->add({name_, row_, step_, {begin_, trace_->now()}});
        } catch (const std::bad_alloc&) {
            // the trace lacks a span
        }
    }

private:
    Trace* trace_;
    const char* name_;
    Index step_;
    Trace::Row row_;
    double begin_;
};

}  // namespace quoin
