// SPDX-License-Identifier: Apache-2.0
#include "hosts.h"

#include <unistd.h>

#include <algorithm>

#include "host/api/files.h"
#include "host/posix/clock.h"
#include "host/posix/compute.h"
#include "host/posix/disk.h"
#include "host/sim/clock.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"

namespace gossamer::host {

std::string name(HostKind kind) { return kind == HostKind::kPosix ? "posix" : "sim"; }

void PrintTo(HostKind kind, std::ostream* out) { *out << name(kind); }

std::unique_ptr<Disk> make_disk(HostKind kind) {
  if (kind == HostKind::kSim) return std::make_unique<SimDisk>();
  return std::make_unique<PosixDisk>();
}

std::unique_ptr<Compute> make_compute(HostKind kind, int workers) {
  if (kind == HostKind::kSim) return std::make_unique<SimCompute>(SimComputeOptions{.workers = workers});
  auto compute = PosixCompute::create(workers);
  CHECK(compute.ok());
  return std::move(*compute);
}

ClockUnderTest make_clock(HostKind kind) {
  if (kind == HostKind::kSim) {
    auto clock = std::make_unique<SimClock>();
    SimClock* sim = clock.get();
    return {.clock = std::move(clock),
            .let_time_pass = [sim] { sim->advance({1}); },
            .use_cpu = [sim] { sim->use_cpu({1}); }};
  }
  auto clock = std::make_unique<PosixClock>();
  const PosixClock* posix = clock.get();
  return {.clock = std::move(clock),
          .let_time_pass =
              [posix] {
                for (const Instant start = posix->now(); posix->now() == start;) {
                }
              },
          .use_cpu =
              [posix] {
                for (const Duration start = posix->process_cpu(); posix->process_cpu() == start;) {
                }
              }};
}

void DiskTest::SetUp() {
  disk_ = make_disk(GetParam());
  std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ranges::replace(test, '/', '_');
  directory_ = ::testing::TempDir() + "gossamer_conformance_" + test + "_" + std::to_string(::getpid());
  ASSERT_TRUE(disk_->remove_all(directory_).ok());
  const auto made = disk_->make_directories(directory_);
  ASSERT_TRUE(made.ok()) << made.error().message();
}

void DiskTest::TearDown() { EXPECT_TRUE(disk_->remove_all(directory_).ok()); }

void DiskTest::write(const std::string& name, std::string_view text, WriteMode mode) {
  auto file = disk_->open_writable(path(name), mode);
  ASSERT_TRUE(file.ok()) << file.error().message();
  const auto appended = (*file)->append(bytes_of(text));
  ASSERT_TRUE(appended.ok()) << appended.error().message();
  const auto closed = (*file)->close();
  ASSERT_TRUE(closed.ok()) << closed.error().message();
}

std::string DiskTest::read(const std::string& name) {
  auto text = read_text(*disk_, path(name));
  EXPECT_TRUE(text.ok()) << text.error().message();
  return text.ok() ? *text : "";
}

}  // namespace gossamer::host
