#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quoin::cli {

/// Power by the counters of energy that a machine has: RAPL's of its CPUs, NVML's of a GPU.
class EnergyMeter {
public:
    /// The packages of the CPUs, and their memory where that is counted apart (RAPL, Linux's powercap).
    static EnergyMeter of_host(const std::string& powercap = "/sys/class/powercap");
    /// A GPU with its memory (NVML), by its address on the PCI bus.
    static EnergyMeter of_gpu(const std::string& pci_bus_id, const std::string& library = "libnvidia-ml.so.1");

    /// Which counter cannot be read, and why, in one sentence; empty where all can.
    const std::string& problem() const { return problem_; }

    /// Returns the mean power in watts while `run` is called again and again for `min_seconds`. In one second a
    /// counter with an update every 100 ms is right to 10%. Returns −1 if there is no counter, without calling `run`,
    /// or if one cannot be read any more.
    double watts(const std::function<void()>& run, double min_seconds = 1);

private:
    /// Microjoules that go up to `range` and start again from 0; 0: they never do.
    struct Counter {
        std::function<std::uint64_t()> read;
        std::uint64_t range = 0;
        std::uint64_t last = 0;
    };
    /// Joules since the last call.
    double used();

    std::vector<Counter> counters_;
    std::string problem_;
};

}  // namespace quoin::cli
