#include "machine.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <CLI/StringTools.hpp>
#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace quoin::cli {

namespace {

std::string first_line(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Calls `f(key, value)` for each "key : value" line.
template <class F>
void for_each_entry(const char* path, F&& f) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        f(CLI::detail::trim_copy(line.substr(0, colon)), CLI::detail::trim_copy(line.substr(colon + 1)));
    }
}

Index leading_integer(const std::string& text) {
    return text.empty() || !std::isdigit(static_cast<unsigned char>(text[0])) ? 0 : std::stoll(text);
}

std::vector<Cache> describe_caches() {
    std::vector<Cache> caches;
    const std::filesystem::path base = "/sys/devices/system/cpu/cpu0/cache";
    for (int i = 0; std::filesystem::exists(base / ("index" + std::to_string(i))); ++i) {
        const std::filesystem::path index = base / ("index" + std::to_string(i));
        if (first_line(index / "type") == "Instruction") continue;
        Cache cache;
        cache.level = static_cast<int>(leading_integer(first_line(index / "level")));
        cache.bytes = 1024 * leading_integer(first_line(index / "size"));  // "32K"
        cache.shared_by = 0;
        for (const char digit : first_line(index / "shared_cpu_map"))
            if (std::isxdigit(static_cast<unsigned char>(digit)))
                cache.shared_by += std::popcount(static_cast<unsigned>(std::stoi(std::string(1, digit), nullptr, 16)));
        caches.push_back(cache);
    }
    return caches;
}

}  // namespace

Machine describe_machine() {
    Machine machine;
    std::set<std::pair<std::string, std::string>> cores;
    std::string package;
    for_each_entry("/proc/cpuinfo", [&](const std::string& key, const std::string& value) {
        if (key == "model name" && machine.cpu.empty()) machine.cpu = value;
        if (key == "physical id") package = value;
        if (key == "core id") cores.emplace(package, value);
    });
    machine.physical_cores = static_cast<int>(cores.size());

    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) machine.cores = CPU_COUNT(&allowed);

    machine.caches = describe_caches();

    for_each_entry("/proc/meminfo", [&](const std::string& key, const std::string& value) {
        if (key == "MemTotal") machine.memory_bytes = 1024 * leading_integer(value);
        if (key == "MemAvailable") machine.memory_available_bytes = 1024 * leading_integer(value);
    });
    if (const Index limit = leading_integer(first_line("/sys/fs/cgroup/memory.max")); limit > 0) {
        machine.memory_bytes = std::min(machine.memory_bytes, limit);
        machine.memory_available_bytes = std::min(machine.memory_available_bytes, limit);
    }
    // "0.20 0.18 0.12 3/345 9876": three threads run, this one among them
    int running = 0;
    if (std::sscanf(first_line("/proc/loadavg").c_str(), "%*s %*s %*s %d/", &running) == 1)
        machine.running_threads = running - 1;
    return machine;
}

std::string Machine::busy() const {
    if (2 * running_threads < cores) return "";
    return fmt::format("{} other threads were running on {} cores before the measurement: its times mean little",
                       running_threads, cores);
}

}  // namespace quoin::cli
