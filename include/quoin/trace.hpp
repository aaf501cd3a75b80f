#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin {

/// A timeline of what contexts do: named spans of work, each on the row of the engine that did it.
///
/// The caller owns it and attaches it to contexts (`Context::attach`). They record on it until another trace, or null,
/// is attached. A span on a GPU lies between two events on its stream. Their times are read when the trace is read, so
/// recording waits for nothing. Without a trace nothing is recorded. Times of every engine are on the host's clock.
/// Several contexts may record on one trace, also from several threads; each must be detached before the trace dies.
///
///     Trace trace;
///     ctx.attach(&trace);
///     auto f = qr(ctx, A.view());
///     ctx.attach(nullptr);
///     trace.write("qr.json");  // chrome://tracing, ui.perfetto.dev or bench/plots/timeline.py draw it
class Trace {
public:
    /// The engines, in the order of the rows.
    enum class Row {
        Host,        ///< the host's cores
        Device,      ///< a GPU's main stream
        SideStream,  ///< its side stream
        ToDevice,    ///< copies from the host to the GPU
        ToHost,      ///< copies from the GPU to the host
    };
    /// Microseconds since the trace was made.
    struct Times {
        double begin = 0, end = 0;
    };
    /// One row's work from one time to another.
    struct Span {
        std::string name;
        Row row = Row::Host;
        Index step = -1;  ///< of the algorithm, such as the panel's number; −1: none
        Times times;
    };

    Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    /// Microseconds since the trace was made.
    double now() const;
    /// Adds a span. Its times are in `span`, or `times` returns them once the work is done.
    void add(Span span);
    void add(Span span, std::function<Times()> times);

    /// Returns every span so far, ordered by begin; of spans that begin together the longest comes first. Waits for
    /// spans on a GPU. Throws DeviceFailure if their work failed.
    std::vector<Span> spans() const;
    /// Returns every span in the trace event format of Chrome and Perfetto: complete events ("ph": "X") in
    /// microseconds, with a thread for each row and the step among the arguments.
    std::string json() const;
    /// Writes `json()` to a file, which appears complete or not at all. Throws UnwritableFile.
    void write(const std::string& path) const;

private:
    struct Recorded {
        Span span;
        std::function<Times()> times;  // empty: the times in `span`
    };
    double start_;
    mutable std::mutex mutex_;
    std::vector<Recorded> recorded_;
};

/// "host", "device, main stream", "device, side stream", "host to device", "device to host".
const char* to_string(Trace::Row row);

}  // namespace quoin
