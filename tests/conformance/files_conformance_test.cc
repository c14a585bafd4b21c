// SPDX-License-Identifier: Apache-2.0
//
// The promises of host/api/files.h, on both hosts. On the simulated host they are also tested under every
// fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "host/api/files.h"
#include "host/sim/disk.h"
#include "hosts.h"

namespace gossamer::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FilesConformance : public DiskTest {};

// read_text() gives the whole file, whatever its size, and refuses one over the limit as bad data.
TEST_P(FilesConformance, ReadText) {
  for (const std::size_t size : {0U, 1U, 65535U, 65536U, 65537U, 200000U}) {
    const std::string text(size, 'x');
    write("f", text);
    EXPECT_EQ(read("f"), text);
    EXPECT_TRUE(read_text(*disk_, path("f"), size).ok()) << size;
    if (size == 0) continue;
    const auto refused = read_text(*disk_, path("f"), size - 1);
    ASSERT_FALSE(refused.ok()) << size;
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(refused.error().where, path("f"));
  }
  EXPECT_THAT(read_text(*disk_, path("g")).error().message(), HasSubstr(path("g")));
}

// replace_file() makes or replaces a file and leaves no other name behind.
TEST_P(FilesConformance, ReplaceFile) {
  for (const char* text : {"first", "", "third, longer than the others"}) {
    const auto done = replace_file(*disk_, path("f"), text);
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(read("f"), text);
    EXPECT_THAT(*disk_->list(directory_), ElementsAre("f"));
  }
}

// replace_private_file() makes or replaces a file, too, and leaves no other name behind.
TEST_P(FilesConformance, ReplacePrivateFile) {
  for (const char* text : {"first", "", "third, longer than the others"}) {
    ASSERT_TRUE(replace_private_file(*disk_, path("f"), text).ok());
    EXPECT_EQ(read("f"), text);
    EXPECT_THAT(*disk_->list(directory_), ElementsAre("f"));
  }
}

// A failing replace_file() reports the path and leaves nothing behind.
TEST_P(FilesConformance, ReplaceFileFails) {
  ASSERT_TRUE(disk_->make_directories(path("d/inner")).ok());
  const auto failed = replace_file(*disk_, path("d"), "text");
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message(), HasSubstr(path("d")));
  EXPECT_THAT(*disk_->list(directory_), ElementsAre("d"));
  EXPECT_FALSE(replace_file(*disk_, path("missing/f"), "text").ok());
}

INSTANTIATE_TEST_SUITE_P(Hosts, FilesConformance, ::testing::Values(HostKind::kPosix, HostKind::kSim),
                         ::testing::PrintToStringParamName());

// parent() is the directory part of a path.
TEST(Files, Parent) {
  EXPECT_EQ(parent("a/b/c"), "a/b");
  EXPECT_EQ(parent("/a"), "/");
  EXPECT_EQ(parent("c"), ".");
}

constexpr std::string_view kOld = "the old content";
constexpr std::string_view kNew = "the new content, longer";
constexpr std::uint64_t kSeeds = 64;

// A disk whose file "d/f" durably holds kOld, with new options from there on.
std::unique_ptr<SimDisk> disk_with_old(const SimDiskOptions& options) {
  auto disk = std::make_unique<SimDisk>();
  CHECK(disk->make_directories("d").ok());
  CHECK(disk->sync_directory("/").ok());
  CHECK(replace_file(*disk, "d/f", kOld).ok());
  disk->restart_count(options);
  return disk;
}

std::string content(Disk& disk) {
  const auto text = read_text(disk, "d/f");
  return text.ok() ? *text : "(" + text.error().message() + ")";
}

std::uint64_t operations_of_replace() {
  const auto disk = disk_with_old({});
  CHECK(replace_file(*disk, "d/f", kNew).ok());
  return disk->operations();
}

// The content after a crash is old or new, whatever operation it hits and whatever survives it. It is new for
// certain once replace_file() has returned well, and old for certain before the rename. Both do occur.
TEST(ReplaceFile, CrashAtEveryOperationLeavesOldOrNew) {
  const std::uint64_t operations = operations_of_replace();
  ASSERT_GE(operations, 6U);  // open, append, sync, close, rename, sync_directory
  std::set<std::string> seen;
  for (std::uint64_t k = 0; k <= operations; ++k) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      for (const TornTail tail : {TornTail::kCut, TornTail::kGarbage}) {
        const auto disk = disk_with_old({.seed = seed, .crash_at_operation = k, .torn_tail = tail});
        const bool done = replace_file(*disk, "d/f", kNew).ok();
        EXPECT_EQ(done, k == operations);
        const std::string after = content(*disk->after_crash());
        EXPECT_TRUE(after == kNew || (after == kOld && !done)) << after << " k " << k << " seed " << seed;
        // The last operation syncs the directory, the one before it renames.
        if (k <= operations - 2) {
          EXPECT_EQ(after, kOld) << "k " << k << " seed " << seed;
        }
        seen.insert(after);
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre(kNew, kOld));
}

// The file can be replaced again after a crash, whatever the crash left beside it.
TEST(ReplaceFile, WorksAgainAfterACrash) {
  for (std::uint64_t k = 0; k <= operations_of_replace(); ++k) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto disk = disk_with_old({.seed = seed, .crash_at_operation = k});
      static_cast<void>(replace_file(*disk, "d/f", kNew).ok());
      const auto later = disk->after_crash();
      ASSERT_TRUE(replace_file(*later, "d/f", "third").ok()) << "k " << k << " seed " << seed;
      EXPECT_EQ(content(*later->after_crash()), "third") << "k " << k << " seed " << seed;
      EXPECT_THAT(*later->list("d"), ElementsAre("f"));
    }
  }
}

// A disk that is full after any number of bytes keeps the old content and no temporary file.
TEST(ReplaceFile, FullDiskKeepsTheOldContent) {
  for (std::uint64_t room = 0; room <= kNew.size(); ++room) {
    const auto disk = disk_with_old({.capacity_bytes = kOld.size() + room});
    const auto done = replace_file(*disk, "d/f", kNew);
    EXPECT_EQ(done.ok(), room == kNew.size()) << "room " << room;
    if (!done.ok()) {
      EXPECT_THAT(done.error().message(), HasSubstr("No space left on device"));
    }
    EXPECT_EQ(content(*disk), done.ok() ? kNew : kOld) << "room " << room;
    EXPECT_THAT(*disk->list("d"), ElementsAre("f")) << "room " << room;
  }
}

// A failing operation is reported and leaves no temporary file. The old content stays unless the rename had
// happened. Another attempt succeeds.
TEST(ReplaceFile, ErrorAtEveryOperation) {
  const std::uint64_t operations = operations_of_replace();
  for (std::uint64_t k = 0; k < operations; ++k) {
    const auto disk = disk_with_old({.fail_at_operation = k});
    const auto failed = replace_file(*disk, "d/f", kNew);
    ASSERT_FALSE(failed.ok()) << "k " << k;
    EXPECT_THAT(failed.error().message(), HasSubstr("Input/output error"));
    EXPECT_EQ(content(*disk), k == operations - 1 ? kNew : kOld) << "k " << k;
    EXPECT_THAT(*disk->list("d"), ElementsAre("f")) << "k " << k;
    EXPECT_TRUE(replace_file(*disk, "d/f", kNew).ok());
    EXPECT_EQ(content(*disk->after_crash()), kNew);
  }
}

}  // namespace
}  // namespace gossamer::host
