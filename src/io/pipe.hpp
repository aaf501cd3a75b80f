#pragma once

// Input that has no size and cannot be mapped.

#include <cstddef>
#include <optional>
#include <string>

namespace quoin::io {

/// Reads a pipe to its end, or standard input, of any kind, for the path "-". Returns nothing if `path` is something
/// else. Waits for the writer. Throws UnreadableFile, and OutOfMemory for more than `most` bytes.
std::optional<std::string> read_pipe(const std::string& path, std::size_t most);

}  // namespace quoin::io
