#pragma once

// Limits that Linux's control groups (cgroups) set on the process.

#include <filesystem>

namespace quoin::io {

/// Limits of the process's control groups and of all groups above them, in cgroups v1 and v2; Infinity without one.
struct ControlGroupLimits {
    double cpus;          ///< CPU time that the process may use in a second, in seconds: the smallest quota / period
    double memory_bytes;  ///< the smallest limit
};

/// Reads the limits from proc/self and the folders of the mounted hierarchies under `root`.
ControlGroupLimits control_group_limits(const std::filesystem::path& root = "/");

}  // namespace quoin::io
