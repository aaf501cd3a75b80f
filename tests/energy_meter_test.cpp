// Counters of energy: files in a folder like Linux's powercap, and a library like NVML.

#include "measure/energy_meter.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace quoin::test {
namespace {

namespace fs = std::filesystem;
using cli::EnergyMeter;

class EnergyMeterTest : public testing::Test {
protected:
    EnergyMeterTest() : folder_(fs::temp_directory_path() / ("quoin_energy_" + std::to_string(getpid()))) {
        fs::create_directories(folder_);
    }
    ~EnergyMeterTest() override { fs::remove_all(folder_); }

    void set(const std::string& zone, const std::string& file, const std::string& text) {
        fs::create_directories(folder_ / zone);
        std::ofstream(folder_ / zone / file) << text << "\n";
    }
    void add_zone(const std::string& zone, const std::string& name, const std::string& microjoules) {
        set(zone, "name", name);
        set(zone, "max_energy_range_uj", "65532610987");
        set(zone, "energy_uj", microjoules);
    }
    EnergyMeter meter() { return EnergyMeter::of_host(folder_); }
    static double seconds_since(std::chrono::steady_clock::time_point start) {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    /// The power for `joules` used by `run` once: over the time of the run at least, of the call at most, however busy
    /// the machine.
    static void expect_power(EnergyMeter& meter, double joules, const std::function<void()>& run) {
        const auto call = std::chrono::steady_clock::now();
        double ran = 0;
        const double watts = meter.watts(
            [&] {
                const auto start = std::chrono::steady_clock::now();
                run();
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                ran = seconds_since(start);
            },
            0);
        EXPECT_LE(watts, joules / ran * (1 + 1e-9));
        EXPECT_GE(watts, joules / seconds_since(call) * (1 - 1e-9));
    }

    const fs::path folder_;
};

TEST_F(EnergyMeterTest, PackagesAndMemoryAreAddedAndWhatTheyHoldIsNot) {
    add_zone("intel-rapl:0", "package-0", "1000000");
    add_zone("intel-rapl:1", "package-1", "7000000");
    add_zone("intel-rapl:0:0", "core", "0");
    add_zone("intel-rapl:0:1", "dram", "2000000");
    add_zone("intel-rapl:2", "psys", "0");
    EnergyMeter meter = this->meter();
    EXPECT_EQ(meter.problem(), "");
    expect_power(meter, 50 + 30 + 10, [&] {
        set("intel-rapl:0", "energy_uj", "51000000");
        set("intel-rapl:1", "energy_uj", "37000000");
        set("intel-rapl:0:0", "energy_uj", "900000000");
        set("intel-rapl:0:1", "energy_uj", "12000000");
        set("intel-rapl:2", "energy_uj", "900000000");
    });
}

TEST_F(EnergyMeterTest, ACounterStartsAgainFromZero) {
    add_zone("intel-rapl:0", "package-0", "65522610987");
    EnergyMeter meter = this->meter();
    expect_power(meter, 10 + 30, [&] { set("intel-rapl:0", "energy_uj", "30000000"); });
}

TEST_F(EnergyMeterTest, RunsUntilTheCounterIsExact) {
    add_zone("intel-rapl:0", "package-0", "0");
    EnergyMeter meter = this->meter();
    const auto start = std::chrono::steady_clock::now();
    double all = 0, last = 0;
    meter.watts(
        [&] {
            const auto run = std::chrono::steady_clock::now();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            all += last = seconds_since(run);
        },
        0.2);
    EXPECT_LT(all - last, 0.2) << "it runs no longer";
    EXPECT_GE(seconds_since(start), 0.2);
}

TEST_F(EnergyMeterTest, WithoutCountersItSaysWhyAndRunsNothing) {
    const auto expect_problem = [](EnergyMeter meter, const std::string& why) {
        EXPECT_NE(meter.problem().find(why), std::string::npos) << meter.problem();
        EXPECT_EQ(meter.problem().find('\n'), std::string::npos);
        bool ran = false;
        EXPECT_EQ(meter.watts([&] { ran = true; }), -1);
        EXPECT_FALSE(ran);
    };
    expect_problem(EnergyMeter::of_host(folder_ / "missing"), "no RAPL counter");
    expect_problem(meter(), "no RAPL counter");
    add_zone("intel-rapl:0", "package-0", "not a number");
    expect_problem(meter(), "energy_uj cannot be read (it is not a number)");
    fs::remove(folder_ / "intel-rapl:0" / "energy_uj");
    expect_problem(meter(), "energy_uj cannot be read (No such file or directory)");
    if (geteuid() != 0) {
        add_zone("intel-rapl:0", "package-0", "1");
        fs::permissions(folder_ / "intel-rapl:0" / "energy_uj", fs::perms::none);
        expect_problem(meter(), "energy_uj cannot be read (Permission denied)");
    }
    expect_problem(EnergyMeter::of_gpu("0000:01:00.0", "libno-such-nvml.so.1"), "NVML is not there");
    expect_problem(EnergyMeter::of_gpu("0000:01:00.0", "libm.so.6"), "NVML has no nvml");
    expect_problem(EnergyMeter::of_gpu("0000:07:00.0", QUOIN_FAKE_NVML), "does not know the GPU (Not Found)");
    expect_problem(EnergyMeter::of_gpu("0000:02:00.0", QUOIN_FAKE_NVML),
                   "does not count the energy of the GPU (Not Supported)");
}

TEST_F(EnergyMeterTest, OfAGpu) {
    const auto loaded = [] { return dlopen(QUOIN_FAKE_NVML, RTLD_NOW | RTLD_NOLOAD) != nullptr; };
    {
        EnergyMeter meter = EnergyMeter::of_gpu("0000:01:00.0", QUOIN_FAKE_NVML);
        EXPECT_EQ(meter.problem(), "");
        expect_power(meter, 250, [] {});
    }
    EXPECT_FALSE(loaded()) << "the library is closed with its last meter";
}

}  // namespace
}  // namespace quoin::test
