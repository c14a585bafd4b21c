// SPDX-License-Identifier: Apache-2.0
#include "run/scratch_directory.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "host/sim/disk.h"
#include "run/test_machine.h"

namespace gossamer::run {
namespace {

using Names = std::vector<std::string>;

// Claim: the directory is there with its files while the object lives, also when that is moved, and goes with
// it.
TEST(ScratchDirectory, GoesWithTheObject) {
  host::SimDisk disk;
  {
    auto made = ScratchDirectory::make(disk, "/state/7");
    ASSERT_TRUE(made.ok()) << made.error().message();
    const ScratchDirectory moved = *std::move(made);
    EXPECT_EQ(moved.path(), "/state/7");
    testing::write(disk, "/state/7/file", "x");
  }
  EXPECT_EQ(*disk.list("/state"), Names());
}

// Claim: the directory of a command that was killed is removed by the next command, that of one that lives is
// not, nor what is no number.
TEST(ScratchDirectory, RemovesWhatKilledCommandsLeft) {
  host::SimDisk disk;
  const auto living = ScratchDirectory::make(disk, "/state/5");
  ASSERT_TRUE(living.ok());
  ASSERT_TRUE(disk.make_directories("/state/7a").ok());
  for (const char* killed : {"/state/3", "/state/30", "/state/7"}) {
    ASSERT_TRUE(disk.make_directories(killed).ok());
    testing::write(disk, std::string(killed) + "/measured.tokens", "x");
    testing::write(disk, std::string(killed) + "/.lock", "");
  }
  const auto made = ScratchDirectory::make(disk, "/state/7");
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(*disk.list("/state"), (Names{"5", "7", "7a"}));
}

// Claim: two commands never have the same directory.
TEST(ScratchDirectory, RefusesOneThatIsHeld) {
  host::SimDisk disk;
  const auto first = ScratchDirectory::make(disk, "/state/7");
  ASSERT_TRUE(first.ok());
  const auto second = ScratchDirectory::make(disk, "/state/7");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(*disk.exists("/state/7"));
}

}  // namespace
}  // namespace gossamer::run
