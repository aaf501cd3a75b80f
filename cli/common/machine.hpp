#pragma once

#include <string>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin::cli {

struct Cache {
    int level = 0;
    Index bytes = 0;
    int shared_by = 1;  ///< logical CPUs
};

/// The machine as Linux describes it; empty or zero where it does not say.
struct Machine {
    std::string cpu;
    int cores = 0;  ///< logical CPUs this process may run on
    int physical_cores = 0;
    std::vector<Cache> caches;  ///< data and unified caches of the first CPU, by level
    Index memory_bytes = 0;
    Index memory_available_bytes = 0;  ///< without swapping, and within the control group's limit
    int running_threads = 0;           ///< of other programs, at this moment

    /// One sentence where other work will disturb timings, "" otherwise.
    std::string busy() const;
};

Machine describe_machine();

}  // namespace quoin::cli
