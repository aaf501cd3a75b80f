// Tests of the measurements that describe the machine.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "io/control_group.hpp"
#include "io_files.hpp"
#include "machine.hpp"
#include "measure/machine_limits.hpp"

namespace quoin::cli {
namespace {

constexpr double none = std::numeric_limits<double>::infinity();

/// A folder that is taken for the root of the file system.
class MachineFiles : public test::IoTest {
protected:
    void add(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories((directory_ / name).parent_path());
        write_file(name, text);
    }
    io::ControlGroupLimits limits() const { return io::control_group_limits(directory_); }
    std::string cpu(const std::string& cpuinfo, const std::string& architecture) const {
        return describe_cpu(write_file("cpuinfo", cpuinfo), architecture);
    }
};

TEST_F(MachineFiles, HaveNoLimitsWithoutControlGroups) {
    EXPECT_EQ(limits().cpus, none);
    EXPECT_EQ(limits().memory_bytes, none);
    add("proc/self/cgroup", "0::/\n");
    add("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n");
    EXPECT_EQ(limits().cpus, none);
    add("sys/fs/cgroup/cpu.max", "max 100000\n");
    add("sys/fs/cgroup/memory.max", "max\n");
    EXPECT_EQ(limits().cpus, none);
    EXPECT_EQ(limits().memory_bytes, none);
}

/// The smallest limit counts, whichever group has it; groups beside the process's do not.
TEST_F(MachineFiles, HaveLimitsOfNestedGroups) {
    add("proc/self/cgroup", "0::/user.slice/batch/job\n");
    add("proc/self/mountinfo",
        "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 master:2 - cgroup2 cgroup2 rw\n");
    add("sys/fs/cgroup/user.slice/cpu.max", "600000 100000\n");
    add("sys/fs/cgroup/user.slice/batch/cpu.max", "75000 50000\n");
    add("sys/fs/cgroup/user.slice/batch/job/cpu.max", "max 100000\n");
    add("sys/fs/cgroup/user.slice/batch/other/cpu.max", "1000 100000\n");
    add("sys/fs/cgroup/user.slice/memory.max", "3000000\n");
    add("sys/fs/cgroup/user.slice/batch/job/memory.max", "5000000\n");
    EXPECT_EQ(limits().cpus, 1.5);
    EXPECT_EQ(limits().memory_bytes, 3e6);
    add("sys/fs/cgroup/user.slice/batch/job/cpu.max", "25000 100000\n");
    EXPECT_EQ(limits().cpus, 0.25);
}

/// v1 beside a hierarchy of v2 without controllers, as systemd mounts them.
TEST_F(MachineFiles, HaveLimitsOfVersion1) {
    add("proc/self/cgroup", "5:memory:/a/b\n4:cpu,cpuacct:/a\n3:cpuset:/c\n1:name=systemd:/a\n0::/a\n");
    add("proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
        "33 31 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
        "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
        "35 31 0:32 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    add("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    add("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(limits().cpus, none);
    add("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
    add("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    add("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    add("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096000\n");
    EXPECT_EQ(limits().cpus, 2.5);
    EXPECT_EQ(limits().memory_bytes, 4096000);
}

/// In a container the mount point shows the container's group: paths in proc/self/cgroup begin above it, or outside.
TEST_F(MachineFiles, HaveLimitsInContainers) {
    add("proc/self/cgroup", "4:cpu:/docker/x/inner\n0::/../other\n");
    add("proc/self/mountinfo",
        "32 31 0:29 /docker/x /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
        "35 31 0:32 / /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw\n");
    add("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
    add("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(limits().cpus, 3);
    add("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "200000\n");
    add("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(limits().cpus, 2);
    add("sys/fs/cgroup/unified/cpu.max", "100000 100000\n");
    EXPECT_EQ(limits().cpus, 1);
}

TEST_F(MachineFiles, DescribeTheMachine) {
    add("proc/cpuinfo", "model name\t: A CPU\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
    add("proc/meminfo", "MemTotal:  2000 kB\nMemFree:  500 kB\nMemAvailable:  1500 kB\n");
    for (int i = 0; i < 4; ++i) {
        add(fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", i), i < 2 ? "0-1\n" : "2-3\n");
    }
    const Machine free = describe_machine(directory_);
    EXPECT_TRUE(free.cpu == "A CPU" || free.cpu == "Arm Neoverse-V1") << free.cpu;
    EXPECT_EQ(free.physical_cores, 2);
    EXPECT_EQ(free.memory_bytes, 2048000);
    EXPECT_EQ(free.memory_available_bytes, 1536000);
    EXPECT_EQ(free.cpu_quota, none);

    add("proc/self/cgroup", "0::/job\n");
    add("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    add("sys/fs/cgroup/job/memory.max", "1600000\n");
    add("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    const Machine limited = describe_machine(directory_);
    EXPECT_EQ(limited.memory_bytes, 1600000);
    EXPECT_EQ(limited.memory_available_bytes, 1536000);
    EXPECT_EQ(limited.cpu_quota, 1.5);
}

TEST_F(MachineFiles, NameTheCpu) {
    const std::string epyc = "vendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n\nmodel name\t: AMD EPYC\n";
    EXPECT_EQ(cpu(epyc, "x86_64"), "AMD EPYC");
    EXPECT_EQ(cpu(epyc, "aarch64"), "aarch64");  // as QEMU shows it
    EXPECT_EQ(cpu("", "riscv64"), "riscv64");
    const auto arm = [](const char* implementer, const char* part) {
        return fmt::format("processor\t: 0\nmodel name\t: ARMv8 Processor\nCPU implementer\t: {}\nCPU part\t: {}\n\n",
                           implementer, part);
    };
    EXPECT_EQ(cpu(arm("0x41", "0xd0c") + arm("0x41", "0xd0c"), "aarch64"), "Arm Neoverse-N1");
    EXPECT_EQ(cpu(arm("0x41", "0xd05") + arm("0x41", "0xd0b"), "aarch64"), "Arm Cortex-A55 and Arm Cortex-A76");
    EXPECT_EQ(cpu(arm("0x61", "0x032"), "aarch64"), "Apple core, part 0x32");
    EXPECT_EQ(cpu(arm("0x99", "0x001"), "aarch64"), "Arm core, implementer 0x99, part 0x1");
}

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
