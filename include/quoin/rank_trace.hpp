#pragma once

#include "quoin/communicator.hpp"
#include "quoin/trace.hpp"

namespace quoin {

/// Writes the traces of all ranks to one file, in the format of `Trace::write`. Each rank is a process in it, "rank 0",
/// "rank 1", …, and all times are on the clock of rank 0. Every rank calls it, and waits until rank 0 has its trace.
/// Rank 0 throws UnwritableFile.
///
/// The clocks are compared by messages there and back, and agree to half of the shortest round trip. Messages are
/// spans: "wait" for a received message, "send", and "broadcast" and "reduce" around them.
///
///     Trace trace;
///     ctx.attach(&trace);
///     auto f = qr(ctx, comm, A.view());
///     ctx.attach(nullptr);
///     write_trace("ranks.json", trace, comm);
void write_trace(const std::string& path, const Trace& mine, Communicator& comm);

}  // namespace quoin
