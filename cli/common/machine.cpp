#include "machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <CLI/StringTools.hpp>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "io/control_group.hpp"

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
void for_each_entry(const std::filesystem::path& path, F&& f) {
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

/// A kind of Arm cores by its numbers in /proc/cpuinfo, from the register MIDR_EL1.
struct ArmCore {
    int implementer, part;
    const char* name;
};
constexpr int any_part = -1;
// the kinds of servers and common boards; a line with any_part names the designer of the remaining ones
constexpr ArmCore arm_cores[] = {
    {0x41, 0xd03, "Arm Cortex-A53"},   {0x41, 0xd05, "Arm Cortex-A55"},  {0x41, 0xd08, "Arm Cortex-A72"},
    {0x41, 0xd0b, "Arm Cortex-A76"},   {0x41, 0xd0c, "Arm Neoverse-N1"}, {0x41, 0xd40, "Arm Neoverse-V1"},
    {0x41, 0xd42, "Arm Cortex-A78AE"}, {0x41, 0xd49, "Arm Neoverse-N2"}, {0x41, 0xd4f, "Arm Neoverse-V2"},
    {0x41, any_part, "Arm"},           {0x46, 0x001, "Fujitsu A64FX"},   {0x48, 0xd01, "HiSilicon Kunpeng-920"},
    {0x48, any_part, "HiSilicon"},     {0x4e, any_part, "NVIDIA"},       {0x51, any_part, "Qualcomm"},
    {0x61, any_part, "Apple"},         {0xc0, 0xac3, "Ampere-1"},        {0xc0, 0xac4, "Ampere-1a"},
    {0xc0, any_part, "Ampere"},
};

/// Returns a name such as "Arm Neoverse-N1", "Apple core, part 0x32" or "Arm core, implementer 0x99, part 0x1".
std::string arm_core(int implementer, int part) {
    for (const ArmCore& core : arm_cores) {
        if (core.implementer != implementer) continue;
        if (core.part == part) return core.name;
        if (core.part == any_part) return fmt::format("{} core, part {:#x}", core.name, part);
    }
    return fmt::format("Arm core, implementer {:#x}, part {:#x}", implementer, part);
}

int hexadecimal(const std::string& text) { return static_cast<int>(std::strtol(text.c_str(), nullptr, 16)); }

/// Counts the lists of CPUs that share a core.
int count_cores(const std::filesystem::path& cpus) {
    std::set<std::string> siblings;
    for (int i = 0; std::filesystem::exists(cpus / fmt::format("cpu{}", i)); ++i) {
        siblings.insert(first_line(cpus / fmt::format("cpu{}/topology/thread_siblings_list", i)));
    }
    siblings.erase("");
    return static_cast<int>(siblings.size());
}

std::vector<Cache> describe_caches(const std::filesystem::path& base) {
    std::vector<Cache> caches;
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

std::string describe_cpu(const std::filesystem::path& cpuinfo, const std::string& architecture) {
    std::string model, arm;
    std::set<std::string> kinds;  // a chip may have large and small cores
    int implementer = 0;
    for_each_entry(cpuinfo, [&](const std::string& key, const std::string& value) {
        if (key == "model name" && model.empty()) model = value;
        if (key == "CPU implementer") implementer = hexadecimal(value);
        if (key != "CPU part") return;
        const std::string core = arm_core(implementer, hexadecimal(value));
        if (kinds.insert(core).second) arm += (arm.empty() ? "" : " and ") + core;
    });
    // QEMU shows a program for Arm the file of the x86 machine; some Arm kernels name the architecture as the model
    const std::string& name = architecture == "aarch64" ? arm : model;
    return name.empty() ? architecture : name;
}

Machine describe_machine(const std::filesystem::path& root) {
    Machine machine;
    utsname system{};
    uname(&system);
    machine.cpu = describe_cpu(root / "proc/cpuinfo", system.machine);

    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) machine.cores = CPU_COUNT(&allowed);
    const std::filesystem::path cpus = root / "sys/devices/system/cpu";
    machine.physical_cores = count_cores(cpus);
    machine.caches = describe_caches(cpus / "cpu0/cache");

    for_each_entry(root / "proc/meminfo", [&](const std::string& key, const std::string& value) {
        if (key == "MemTotal") machine.memory_bytes = 1024 * leading_integer(value);
        if (key == "MemAvailable") machine.memory_available_bytes = 1024 * leading_integer(value);
    });
    const io::ControlGroupLimits limits = io::control_group_limits(root);
    machine.cpu_quota = limits.cpus;
    for (Index* const bytes : {&machine.memory_bytes, &machine.memory_available_bytes}) {
        if (limits.memory_bytes < static_cast<double>(*bytes)) *bytes = static_cast<Index>(limits.memory_bytes);
    }
    // "0.20 0.18 0.12 3/345 9876": three threads run, this one among them
    int running = 0;
    if (std::sscanf(first_line(root / "proc/loadavg").c_str(), "%*s %*s %*s %d/", &running) == 1)
        machine.running_threads = running - 1;
    return machine;
}

std::string Machine::busy() const {
    if (2 * running_threads < cores) return "";
    return fmt::format("{} other threads were running on {} cores before the measurement: its times mean little",
                       running_threads, cores);
}

}  // namespace quoin::cli
