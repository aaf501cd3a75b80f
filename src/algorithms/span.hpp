#pragma once

#include <new>

#include "quoin/context.hpp"

namespace quoin {

/// A span of the context's work on its trace, from its making to its end; nothing where none is attached. `name` must outlive
/// it. On a GPU it is of the work that is enqueued on the stream meanwhile, on `row` or that of the stream.
template <class D>
class Span;

template <>
class Span<Host> {
public:
    explicit Span(const Context<Host>& ctx, const char* name, Index step = -1, Trace::Row row = Trace::Row::Host)
        : Span(ctx.trace(), name, step, row) {}
    /// Of work beside that of a context that records on `trace`.
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

template <class D, class... Arguments>
Span(Context<D>&, Arguments...) -> Span<D>;

}  // namespace quoin
