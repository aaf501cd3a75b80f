#pragma once

#include <string>

#include "io/atomic_file.hpp"
#include "quoin/rank_trace.hpp"

namespace quoin::cli {

/// Attaches a trace to a context while this object lives.
template <class D>
class Attached {
public:
    Attached(Context<D>& ctx, Trace& trace) : ctx_(ctx) { ctx_.attach(&trace); }
    Attached(const Attached&) = delete;
    ~Attached() { ctx_.attach(nullptr); }

private:
    Context<D>& ctx_;
};

/// Records a timeline of the work of a context while this object lives, for --trace. Does nothing without a path.
template <class D>
class Tracing {
public:
    /// Throws UnwritableFile at once if the file cannot be written.
    Tracing(Context<D>& ctx, const std::string& path) : ctx_(ctx), path_(path) {
        if (path_.empty()) return;
        io::AtomicFile{path_};
        ctx_.attach(&trace_);
    }
    Tracing(const Tracing&) = delete;
    ~Tracing() {
        if (!path_.empty()) ctx_.attach(nullptr);
    }
    /// Waits for the work on a GPU.
    void write() const {
        if (!path_.empty()) trace_.write(path_);
    }
    /// Writes the timeline of all ranks. Every rank calls it.
    void write(Communicator& comm) const {
        if (!path_.empty()) write_trace(path_, trace_, comm);
    }

private:
    Context<D>& ctx_;
    const std::string path_;
    Trace trace_;
};

}  // namespace quoin::cli
