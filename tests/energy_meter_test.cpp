// Counters of energy: those of a folder like Linux's powercap, and those of a library like NVML.

#include "energy_meter.hpp"

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
    /// Joules by the meter while `run` runs once, from its mean power over the time taken.
    static double joules(EnergyMeter& meter, const std::function<void()>& run) {
        const auto start = std::chrono::steady_clock::now();
        const double watts = meter.watts(
            [&] {
                run();
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            },
            0);
        return watts * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
    const double used = joules(meter, [&] {
        set("intel-rapl:0", "energy_uj", "51000000");
        set("intel-rapl:1", "energy_uj", "37000000");
        set("intel-rapl:0:0", "energy_uj", "900000000");
        set("intel-rapl:0:1", "energy_uj", "12000000");
        set("intel-rapl:2", "energy_uj", "900000000");
    });
    EXPECT_NEAR(used, 50 + 30 + 10, 1);
}

TEST_F(EnergyMeterTest, ACounterStartsAgainFromZero) {
    add_zone("intel-rapl:0", "package-0", "65522610987");
    EnergyMeter meter = this->meter();
    EXPECT_NEAR(joules(meter, [&] { set("intel-rapl:0", "energy_uj", "30000000"); }), 10 + 30, 0.5);
}

TEST_F(EnergyMeterTest, RunsUntilTheCounterIsExact) {
    add_zone("intel-rapl:0", "package-0", "0");
    EnergyMeter meter = this->meter();
    int runs = 0;
    meter.watts(
        [&] {
            ++runs;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        },
        0.2);
    EXPECT_GE(runs, 5);
    EXPECT_LE(runs, 10);
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
        EXPECT_NEAR(joules(meter, [] {}), 250, 5);
    }
    EXPECT_FALSE(loaded()) << "the library is closed with its last meter";
}

}  // namespace
}  // namespace quoin::test
