// Tests of the measurements that describe the machine.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "machine.hpp"
#include "measure/machine_limits.hpp"

namespace quoin::cli {
namespace {

TEST(Machine, IsBusyWhereOtherThreadsRunOnHalfOfItsCores) {
    Machine machine;
    machine.cores = 4;
    for (const int threads : {0, 1}) {
        machine.running_threads = threads;
        EXPECT_EQ(machine.busy(), "");
    }
    machine.running_threads = 2;
    EXPECT_EQ(machine.busy(), "2 other threads were running on 4 cores before the measurement: its times mean little");
}

TEST(Machine, KnowsItself) {
    const Machine machine = describe_machine();
    EXPECT_GE(machine.cores, 1);
    EXPECT_GE(machine.running_threads, 0);
    EXPECT_GT(machine.memory_available_bytes, 0);
    EXPECT_LE(machine.memory_available_bytes, machine.memory_bytes);
    EXPECT_GE(machine.physical_cores, 0);
    // as Linux lists them, caches of instructions left out
    std::size_t listed = 0;
    for (int i = 0; std::ifstream type{fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/type", i)}; ++i) {
        std::string text;
        type >> text;
        listed += text != "Instruction";
    }
    ASSERT_EQ(machine.caches.size(), listed);
    for (const Cache& cache : machine.caches) {
        EXPECT_GE(cache.level, 1);
        EXPECT_GE(cache.bytes, 4096);
        EXPECT_GE(cache.shared_by, 1);
    }
}

/// No core makes more than 64 multiply-adds of f32 in each of 6e9 cycles a second, or moves 200 GB.
TEST(MachineLimits, AreThoseOfACore) {
    const int cores = describe_machine().cores;
    const MachineLimits limits = measure_machine_limits(true, true);
    const double most = 6e9 * 64 * cores;
    for (const double f32 : {limits.gemm_f32, limits.arithmetic_f32}) {
        EXPECT_LT(f32, most * 2);
        EXPECT_GT(f32, 6e7);
    }
    for (const double f64 : {limits.gemm_f64, limits.arithmetic_f64}) {
        EXPECT_LT(f64, most);
        EXPECT_GT(f64, 6e7);
    }
    EXPECT_GE(limits.arithmetic_f32, limits.gemm_f32);
    EXPECT_GE(limits.arithmetic_f64, limits.gemm_f64);
    EXPECT_LT(limits.copy, 200e9 * cores);
    EXPECT_GT(limits.copy, 1e7);
    EXPECT_EQ(limits.arithmetic(ScalarKind::F32), limits.arithmetic_f32);
    EXPECT_EQ(limits.arithmetic(ScalarKind::F64), limits.arithmetic_f64);
}

}  // namespace
}  // namespace quoin::cli
