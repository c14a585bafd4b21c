// SPDX-License-Identifier: Apache-2.0
#include "host/posix/cgroup.h"

#include <gtest/gtest.h>

#include "host/api/files.h"
#include "host/posix/disk.h"

namespace gossamer::host {
namespace {

// A made-up /proc and /sys below a fresh directory.
class Cgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    CHECK(disk_.remove_all(root_).ok());
    put("/proc/meminfo", "MemFree:  1 kB\nMemTotal:        4096 kB\n");
  }
  void TearDown() override { CHECK(disk_.remove_all(root_).ok()); }

  void put(const std::string& path, std::string_view text) {
    CHECK(disk_.make_directories(parent(root_ + path)).ok());
    CHECK(replace_file(disk_, root_ + path, text).ok());
  }

  PosixDisk disk_;
  const std::string root_ = ::testing::TempDir() + "gossamer_cgroup_test_" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

// Without groups the machine's memory counts and there is no quota.
TEST_F(Cgroup, NoGroups) {
  EXPECT_EQ(usable_memory_bytes(disk_, root_), 4096U * 1024);
  EXPECT_EQ(cpu_quota_cores(disk_, root_), std::nullopt);
  EXPECT_EQ(usable_memory_bytes(disk_, root_ + "/nothing"), std::uint64_t{1} << 63);
}

// Version 2: the smallest limit on the way from the process's group to the top counts; "max" is none.
TEST_F(Cgroup, VersionTwoTakesTheSmallestOnTheWayUp) {
  put("/proc/self/cgroup", "0::/outer/inner\n");
  put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  put("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_memory_bytes(disk_, root_), 4096U * 1024);
  EXPECT_EQ(cpu_quota_cores(disk_, root_), std::nullopt);
  put("/sys/fs/cgroup/outer/memory.max", "1000000\n");
  put("/sys/fs/cgroup/memory.max", "2000000\n");
  put("/sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  put("/sys/fs/cgroup/outer/inner/cpu.max", "300000 100000\n");
  EXPECT_EQ(usable_memory_bytes(disk_, root_), 1000000U);
  EXPECT_EQ(cpu_quota_cores(disk_, root_), 2.5);
  put("/sys/fs/cgroup/memory.max", "500000\n");
  EXPECT_EQ(usable_memory_bytes(disk_, root_), 500000U);
}

// Version 1: each controller has its own tree; a group that the container cannot see leaves the top one.
TEST_F(Cgroup, VersionOne) {
  put("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_memory_bytes(disk_, root_), 4096U * 1024);
  EXPECT_EQ(cpu_quota_cores(disk_, root_), std::nullopt);
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(usable_memory_bytes(disk_, root_), 3000000U);
  EXPECT_EQ(cpu_quota_cores(disk_, root_), 1.5);
}

}  // namespace
}  // namespace gossamer::host
