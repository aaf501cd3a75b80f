#include "io/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

namespace quoin::io {

namespace {

using std::filesystem::path;
constexpr double unlimited = std::numeric_limits<double>::infinity();

bool lists(const std::string& names, std::string_view name) {
    return ("," + names + ",").find("," + std::string(name) + ",") != std::string::npos;
}

/// Returns the process's group in the hierarchy of v1 that has `controller`, or for "" in the one of v2; "" if there
/// is none. /proc/self/cgroup has lines "4:cpu,cpuacct:/group", and "0::/group" for v2.
std::string group_of_process(const path& root, std::string_view controller) {
    std::ifstream file(root / "proc/self/cgroup");
    std::string id, controllers, group;
    while (std::getline(file, id, ':') && std::getline(file, controllers, ':') && std::getline(file, group)) {
        if (controller.empty() ? controllers.empty() : lists(controllers, controller)) return group;
    }
    return "";
}

/// Calls read(folder, v2) for the folders of the process's groups that have `controller`, from the innermost up.
/// /proc/self/mountinfo has lines "32 31 0:29 /root /mount/point rw optional fields - cgroup source rw,cpu"; the mount
/// point shows the hierarchy from /root down.
template <class F>
void for_each_group(const path& root, std::string_view controller, const F& read) {
    std::ifstream file(root / "proc/self/mountinfo");
    for (std::string line; std::getline(file, line);) {
        std::string id, parent, device, top, mount_point, word, type, source, options;
        std::istringstream words(line);
        words >> id >> parent >> device >> top >> mount_point;
        while (words >> word && word != "-") {
        }
        words >> type >> source >> options;
        const bool v2 = type == "cgroup2";
        if (!v2 && (type != "cgroup" || !lists(options, controller))) continue;

        const path mount = root / path(mount_point).relative_path();
        path below = path(group_of_process(root, v2 ? "" : controller)).lexically_relative(top);
        // a group outside of what is mounted: only the limits at the mount point can be seen
        if (below.empty() || *below.begin() == "..") below = ".";
        for (; below.has_relative_path() && below != "."; below = below.parent_path()) read(mount / below, v2);
        read(mount, v2);
    }
}

/// Returns the number in a file; `unlimited` if there is none, as in "max".
double memory_limit(const path& file) {
    double limit = 0;
    std::ifstream(file) >> limit;
    return limit > 0 ? limit : unlimited;
}

/// Returns quota / period of a group: "150000 100000" or "max 100000" in v2, a file for each number in v1, −1 for none.
double cpu_quota(const path& folder, bool v2) {
    double quota = -1, period = 0;
    if (v2) {
        std::ifstream(folder / "cpu.max") >> quota >> period;
    } else {
        std::ifstream(folder / "cpu.cfs_quota_us") >> quota;
        std::ifstream(folder / "cpu.cfs_period_us") >> period;
    }
    return quota > 0 && period > 0 ? quota / period : unlimited;
}

}  // namespace

ControlGroupLimits control_group_limits(const path& root) {
    ControlGroupLimits limits{unlimited, unlimited};
    for_each_group(root, "cpu",
                   [&](const path& folder, bool v2) { limits.cpus = std::min(limits.cpus, cpu_quota(folder, v2)); });
    for_each_group(root, "memory", [&](const path& folder, bool v2) {
        limits.memory_bytes =
            std::min(limits.memory_bytes, memory_limit(folder / (v2 ? "memory.max" : "memory.limit_in_bytes")));
    });
    return limits;
}

}  // namespace quoin::io
