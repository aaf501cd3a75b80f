#include "measure/energy_meter.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "stopwatch.hpp"

namespace quoin::cli {

namespace {

namespace fs = std::filesystem;

struct CounterFailure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The first word of a file. Throws CounterFailure.
template <class Value>
Value value_in(const fs::path& path) {
    errno = 0;
    std::ifstream file(path);
    Value value{};
    if (!(file >> value)) {
        throw CounterFailure(fmt::format("{} cannot be read ({})", path.string(),
                                         errno != 0 ? std::strerror(errno) : "it is not a number"));
    }
    return value;
}

/// The functions of NVML that are needed, as nvml.h declares them; 0 is success.
class Nvml {
public:
    using Device = void*;
    Nvml(const std::string& library, const std::string& pci_bus_id) : handle_(dlopen(library.c_str(), RTLD_NOW)) {
        if (!handle_) throw CounterFailure(fmt::format("NVML is not there ({})", dlerror()));
        try {
            error_string_ = function<const char*(int)>("nvmlErrorString");
            shutdown_ = function<int()>("nvmlShutdown");
            energy_ = function<int(Device, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption");
            const auto find = function<int(const char*, Device*)>("nvmlDeviceGetHandleByPciBusId_v2");
            require(function<int()>("nvmlInit_v2")(), "cannot be started");
            started_ = true;
            require(find(pci_bus_id.c_str(), &device_), "does not know the GPU");
            microjoules();
        } catch (...) {
            close();
            throw;
        }
    }
    Nvml(const Nvml&) = delete;
    ~Nvml() { close(); }

    /// Since the driver was loaded.
    std::uint64_t microjoules() const {
        unsigned long long millijoules = 0;
        require(energy_(device_, &millijoules), "does not count the energy of the GPU");
        return 1000 * millijoules;
    }

private:
    template <class Signature>
    Signature* function(const char* name) const {
        void* const symbol = dlsym(handle_, name);
        if (!symbol) throw CounterFailure(fmt::format("NVML has no {}", name));
        return reinterpret_cast<Signature*>(symbol);
    }
    void require(int status, const char* what) const {
        if (status != 0) throw CounterFailure(fmt::format("NVML {} ({})", what, error_string_(status)));
    }
    void close() {
        if (started_) shutdown_();
        dlclose(handle_);
    }

    void* handle_;
    bool started_ = false;
    Device device_ = nullptr;
    const char* (*error_string_)(int) = nullptr;
    int (*shutdown_)() = nullptr;
    int (*energy_)(Device, unsigned long long*) = nullptr;
};

}  // namespace

EnergyMeter EnergyMeter::of_host(const std::string& powercap) {
    EnergyMeter meter;
    std::error_code error;
    std::vector<fs::path> zones;
    for (const auto& entry : fs::directory_iterator(powercap, error)) {
        if (entry.path().filename().string().starts_with("intel-rapl:")) zones.push_back(entry.path());
    }
    std::sort(zones.begin(), zones.end());
    try {
        for (const fs::path& zone : zones) {
            // a package includes its cores, but not its memory; psys includes everything again
            const auto name = value_in<std::string>(zone / "name");
            if (!name.starts_with("package") && name != "dram") continue;
            Counter counter;
            counter.range = value_in<std::uint64_t>(zone / "max_energy_range_uj");
            counter.read = [file = zone / "energy_uj"] { return value_in<std::uint64_t>(file); };
            counter.last = counter.read();
            meter.counters_.push_back(std::move(counter));
        }
    } catch (const CounterFailure& failure) {
        meter.counters_.clear();
        meter.problem_ = fmt::format("the energy of the CPU is not measured: {}", failure.what());
        return meter;
    }
    if (meter.counters_.empty()) {
        meter.problem_ =
            fmt::format("the energy of the CPU is not measured: {} has no RAPL counter of a package", powercap);
    }
    return meter;
}

EnergyMeter EnergyMeter::of_gpu(const std::string& pci_bus_id, const std::string& library) {
    EnergyMeter meter;
    try {
        const auto nvml = std::make_shared<const Nvml>(library, pci_bus_id);
        meter.counters_.push_back({[nvml] { return nvml->microjoules(); }});
    } catch (const CounterFailure& failure) {
        meter.problem_ = fmt::format("the energy of the GPU is not measured: {}", failure.what());
    }
    return meter;
}

double EnergyMeter::used() {
    double microjoules = 0;
    for (Counter& counter : counters_) {
        const std::uint64_t now = counter.read();
        microjoules +=
            static_cast<double>(now >= counter.last ? now - counter.last : counter.range - counter.last + now);
        counter.last = now;
    }
    return 1e-6 * microjoules;
}

double EnergyMeter::watts(const std::function<void()>& run, double min_seconds) {
    if (counters_.empty()) return -1;
    double joules = 0, seconds = 0;
    try {
        used();
        const Stopwatch watch;
        do {
            run();
            joules += used();  // in every round: a counter of a package starts again after a minute or so
            seconds = watch.seconds();
        } while (seconds < min_seconds);
    } catch (const CounterFailure& failure) {
        counters_.clear();
        problem_ = fmt::format("energy is not measured any more: {}", failure.what());
        return -1;
    }
    return joules / seconds;
}

}  // namespace quoin::cli
