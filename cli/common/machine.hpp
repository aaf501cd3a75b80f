#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quoin/matrix.hpp"

namespace quoin::cli {

struct Cache {
    int level = 0;
    Index bytes = 0;
    int shared_by = 1;  ///< logical CPUs
};

/// The machine as Linux describes it; empty or zero if it does not say.
struct Machine {
    std::string cpu;
    int cores = 0;         ///< logical CPUs this process may run on
    double cpu_quota = 0;  ///< of the process's control groups, in CPUs; Infinity if there is none
    int physical_cores = 0;
    std::vector<Cache> caches;  ///< data and unified caches of the first CPU, by level
    Index memory_bytes = 0;
    Index memory_available_bytes = 0;  ///< without swapping, and within the control group's limit
    int running_threads = 0;           ///< of other programs, at this moment

    /// One sentence where other work will disturb timings, "" otherwise.
    std::string busy() const;
};

Machine describe_machine(const std::filesystem::path& root = "/");

/// Returns the model that the file /proc/cpuinfo names; on "aarch64" the cores' designer and name, by their numbers.
/// Returns `architecture`, as `uname -m` has it, if the file has neither.
std::string describe_cpu(const std::filesystem::path& cpuinfo, const std::string& architecture);

}  // namespace quoin::cli
