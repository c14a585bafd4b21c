// SPDX-License-Identifier: Apache-2.0
//
// The two hosts as test parameters. Each makes its parts anew for a test. Thread rule: the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "host/api/clock.h"
#include "host/api/compute.h"
#include "host/api/disk.h"

namespace gossamer::host {

enum class HostKind { kPosix, kSim };

[[nodiscard]] std::string name(HostKind kind);
void PrintTo(HostKind kind, std::ostream* out);

[[nodiscard]] std::unique_ptr<Disk> make_disk(HostKind kind);
[[nodiscard]] std::unique_ptr<Compute> make_compute(HostKind kind, int workers);

// A clock and the way to let time pass and the CPU work on its host.
struct ClockUnderTest {
  std::unique_ptr<Clock> clock;
  std::function<void()> let_time_pass;
  std::function<void()> use_cpu;
};
[[nodiscard]] ClockUnderTest make_clock(HostKind kind);

// A disk with an empty directory of the running test, removed afterwards.
class DiskTest : public ::testing::TestWithParam<HostKind> {
 protected:
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  // Makes the file, or fails the test.
  void write(const std::string& name, std::string_view text, WriteMode mode = WriteMode::kTruncate);
  // The file's content, or fails the test.
  [[nodiscard]] std::string read(const std::string& name);

  std::unique_ptr<Disk> disk_;
  std::string directory_;
};

[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
[[nodiscard]] inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace gossamer::host
