#pragma once

#include "quoin/matrix.hpp"

namespace CLI {
class App;
}

namespace quoin::cli {

/// Adds --memory SIZE to a command; `bytes` stays 0 where it is not given.
void add_memory_argument(CLI::App& command, Index& bytes);

/// Adds --gpu-memory SIZE; `bytes` stays 0 where it is not given.
void add_gpu_memory_argument(CLI::App& command, Index& bytes);

/// The cap on what the program allocates for matrices: `given`, or three quarters of the available memory.
double memory_cap(Index given);

/// Throws OutOfMemory: the work on `path` needs at least `bytes`, which is beyond `cap`, and `why` says for what.
[[noreturn]] void refuse_memory_cap(const std::string& path, double cap, double bytes, const std::string& why);

}  // namespace quoin::cli
