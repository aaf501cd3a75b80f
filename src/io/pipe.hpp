#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace quoin::io {

/// All that comes through a pipe; through standard input, whatever it is, for the path "-". Nothing where `path` is something else.
/// Waits for who writes to it. Throws UnreadableFile, and OutOfMemory for more than `most` bytes.
std::optional<std::string> read_pipe(const std::string& path, std::size_t most);

}  // namespace quoin::io
