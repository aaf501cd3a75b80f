#pragma once

#include "quoin/communicator.hpp"
#include "quoin/trace.hpp"

namespace quoin {

/// Writes the traces of all ranks to one file, as `Trace::write` does that of one process: each rank is a process there, "rank 0",
/// "rank 1", …, and all times are on the clock of rank 0. Every rank calls it, and waits until rank 0 has what it recorded. Rank 0
/// throws UnwritableFile.
///
/// The clocks are compared by messages there and back; they are right to half of the shortest of those times. Messages are spans:
/// "wait" for one that is received, "send", and "broadcast" and "reduce" around them.
///
///     Trace trace;
///     ctx.attach(&trace);
///     auto f = qr(ctx, comm, A.view());
///     ctx.attach(nullptr);
///     write_trace("ranks.json", trace, comm);
void write_trace(const std::string& path, const Trace& mine, Communicator& comm);

}  // namespace quoin
