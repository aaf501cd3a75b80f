// What measurements say of the machine.

#include <gtest/gtest.h>

#include "machine.hpp"

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
}

}  // namespace
}  // namespace quoin::cli
