// SPDX-License-Identifier: Apache-2.0
//
// What only the simulated disk has: crashes, faults, a capacity. The interface's promises: tests/conformance.
#include "host/sim/disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "host/api/durable_directories.h"
#include "host/api/files.h"

namespace gossamer::host {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::uint64_t kSeeds = 200;

std::unique_ptr<WritableFile> open(Disk& disk, const std::string& path, WriteMode mode) {
  auto file = disk.open_writable(path, mode);
  CHECK(file.ok(), path);
  return std::move(*file);
}

void append(WritableFile& file, std::string_view text) {
  CHECK(file.append(std::as_bytes(std::span(text.data(), text.size()))).ok());
}

// The file's text, or "-" where it is missing.
std::string content(Disk& disk, const std::string& path) {
  auto text = read_text(disk, path);
  return text.ok() ? *text : "-";
}

// The contents of `path` that crashes leave behind, over all seeds.
template <class Prepare>
std::set<std::string> contents_after_crash(const std::string& path, TornTail tail, Prepare prepare) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk({.seed = seed, .torn_tail = tail});
    prepare(disk);
    seen.insert(content(*disk.after_crash(), path));
  }
  return seen;
}

// Unsynced bytes are lost wholly, kept, or cut anywhere; synced ones stay.
TEST(SimDisk, CrashTearsUnsyncedBytes) {
  const auto seen = contents_after_crash("f", TornTail::kCut, [](SimDisk& disk) {
    const auto file = open(disk, "f", WriteMode::kTruncate);
    append(*file, "abc");
    CHECK(file->sync().ok());
    append(*file, "de");
    CHECK(disk.sync_directory("/").ok());
  });
  EXPECT_THAT(seen, ElementsAre("abc", "abcd", "abcde"));
}

// Garbage may follow the part that reached the medium, never longer than the file was, never before it.
TEST(SimDisk, CrashLeavesGarbageWhereAskedFor) {
  const auto seen = contents_after_crash("f", TornTail::kGarbage, [](SimDisk& disk) {
    const auto file = open(disk, "f", WriteMode::kTruncate);
    append(*file, "abc");
    CHECK(file->sync().ok());
    append(*file, "de");
    CHECK(disk.sync_directory("/").ok());
  });
  EXPECT_GT(seen.size(), 10U);
  for (const std::string& text : seen) {
    EXPECT_THAT(text, StartsWith("abc"));
    EXPECT_LE(text.size(), 5U);
  }
}

// A truncation without sync leaves the old content or a part of the new one.
TEST(SimDisk, CrashAfterTruncation) {
  const auto seen = contents_after_crash("f", TornTail::kCut, [](SimDisk& disk) {
    CHECK(replace_file(disk, "f", "old").ok());
    append(*open(disk, "f", WriteMode::kTruncate), "xy");
  });
  EXPECT_THAT(seen, ElementsAre("", "old", "x", "xy"));
}

// A name without directory sync is there or not, even if the file's bytes were synced.
TEST(SimDisk, CrashLosesUnsyncedNames) {
  const auto seen = contents_after_crash("f", TornTail::kCut, [](SimDisk& disk) {
    const auto file = open(disk, "f", WriteMode::kTruncate);
    append(*file, "abc");
    CHECK(file->sync().ok());
  });
  EXPECT_THAT(seen, ElementsAre("-", "abc"));
}

// With a slash behind it a path leads to a folder alone, as on a real disk.
TEST(SimDisk, AFileIsNoFolder) {
  SimDisk disk;
  CHECK(disk.make_directories("d").ok());
  CHECK(replace_file(disk, "d/file", "x").ok());
  EXPECT_TRUE(*disk.exists("d/"));
  EXPECT_TRUE(*disk.exists("d/file"));
  EXPECT_FALSE(*disk.exists("d/file/"));
}

// Two unsynced names come back independently of each other: all four outcomes are met; the same for a
// removal.
TEST(SimDisk, NamesAreIndependent) {
  std::set<std::vector<std::string>> seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk({.seed = seed});
    CHECK(replace_file(disk, "old", "").ok());
    open(disk, "a", WriteMode::kTruncate);
    CHECK(disk.remove_all("old").ok());
    seen.insert(*disk.after_crash()->list("/"));
  }
  EXPECT_EQ(seen, (std::set<std::vector<std::string>>{{}, {"a"}, {"old"}, {"a", "old"}}));
}

// make_durable_directories(): all on the way outlive any crash; what is there already is left as it is.
TEST(SimDisk, DurableDirectoriesOutliveCrashes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimDisk disk({.seed = seed});
    ASSERT_TRUE(make_durable_directories(disk, "/runs/one/checkpoints").ok());
    EXPECT_TRUE(*disk.after_crash()->exists("/runs/one/checkpoints")) << "seed " << seed;
    const std::uint64_t operations = disk.operations();
    ASSERT_TRUE(make_durable_directories(disk, "/runs/one").ok());
    EXPECT_LE(disk.operations(), operations + 2) << "seed " << seed;
    ASSERT_TRUE(make_durable_directories(disk, "runs/two").ok());
    EXPECT_TRUE(*disk.after_crash()->exists("/runs/two")) << "seed " << seed;
  }
}

// Both names of an unsynced rename change or neither, across directories and in a chain; nothing is lost or
// there twice.
TEST(SimDisk, RenameIsAtomic) {
  std::set<std::string> places;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk({.seed = seed});
    for (const char* directory : {"a", "b", "c"}) CHECK(disk.make_directories(directory).ok());
    CHECK(disk.sync_directory("/").ok());
    CHECK(replace_file(disk, "a/f", "text").ok());
    CHECK(disk.rename("a/f", "b/f").ok());
    CHECK(disk.rename("b/f", "c/f").ok());
    const auto where = [&disk] {
      const auto later = disk.after_crash();
      std::string place;
      for (const char* directory : {"a", "b", "c"}) {
        if (content(*later, std::string(directory) + "/f") == "text") place += directory;
      }
      return place;
    };
    EXPECT_THAT(where(), SizeIs(1)) << "seed " << seed;
    places.insert(where());
    CHECK(disk.sync_directory("c").ok());  // with the older changes of the same names
    EXPECT_EQ(where(), "c") << "seed " << seed;
  }
  EXPECT_THAT(places, ElementsAre("a", "b", "c"));
}

// sync_directory() fixes the names of that directory only; a rename between two is fixed by syncing either.
TEST(SimDisk, SyncDirectoryFixesItsNames) {
  std::set<bool> other_is_there;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk({.seed = seed});
    CHECK(disk.make_directories("d").ok());
    open(disk, "d/inner", WriteMode::kTruncate);
    open(disk, "moved", WriteMode::kTruncate);
    open(disk, "stays", WriteMode::kTruncate);
    CHECK(disk.rename("moved", "d/moved").ok());
    CHECK(disk.sync_directory("/").ok());
    const auto later = disk.after_crash();
    EXPECT_THAT(*later->list("/"), ElementsAre("d", "stays")) << "seed " << seed;
    EXPECT_THAT(*later->list("d"), Contains("moved")) << "seed " << seed;
    other_is_there.insert(*later->exists("d/inner"));
  }
  EXPECT_THAT(other_is_there, SizeIs(2));
}

// A removed directory without sync may come back whole, in part or not at all; with sync it is gone.
TEST(SimDisk, RemovedDirectoryMayComeBackInPart) {
  std::set<std::vector<std::string>> seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk({.seed = seed});
    CHECK(disk.make_directories("d").ok());
    CHECK(disk.sync_directory("/").ok());
    for (const char* path : {"d/x", "d/y"}) CHECK(replace_file(disk, path, "").ok());
    CHECK(disk.remove_all("d").ok());
    const auto later = disk.after_crash();
    seen.insert(*later->exists("d") ? *later->list("d") : std::vector<std::string>{"gone"});
    CHECK(disk.sync_directory("/").ok());
    EXPECT_FALSE(*disk.after_crash()->exists("d")) << "seed " << seed;
  }
  EXPECT_THAT(seen, Contains(ElementsAre("x", "y")));
  EXPECT_THAT(seen, Contains(ElementsAre("gone")));
  EXPECT_THAT(seen, Contains(ElementsAre("x")));
  EXPECT_THAT(seen, Contains(ElementsAre()));
}

// Operation k and all later ones fail with "crashed", and what came before k is done.
TEST(SimDisk, CrashStopsEverything) {
  SimDisk disk({.crash_at_operation = 2});
  const auto file = open(disk, "f", WriteMode::kTruncate);
  append(*file, "abc");
  EXPECT_EQ(disk.operations(), 2U);
  EXPECT_THAT(file->sync().error().message(), HasSubstr("crashed"));
  EXPECT_THAT(disk.exists("f").error().message(), HasSubstr("crashed"));
  EXPECT_EQ(disk.operations(), 4U);
  EXPECT_THAT(
      contents_after_crash("f", TornTail::kCut,
                           [](SimDisk& again) {
                             again.restart_count({.seed = again.operations(), .crash_at_operation = 1});
                             EXPECT_FALSE(replace_file(again, "f", "abc").ok());
                           }),
      ElementsAre("-"));
}

// Operation k alone fails; a failing write leaves a part.
TEST(SimDisk, ErrorAtOneOperation) {
  std::set<std::string> left;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk({.seed = seed, .fail_at_operation = 1});
    const auto file = open(disk, "f", WriteMode::kTruncate);
    const std::string_view text = "abc";
    const auto failed = file->append(std::as_bytes(std::span(text.data(), text.size())));
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().message(), "f: cannot write: Input/output error");
    left.insert(content(disk, "f"));
  }
  EXPECT_THAT(left, ElementsAre("", "a", "ab", "abc"));
}

// A full disk takes what fits, says so, and has room again after a removal.
TEST(SimDisk, RunsFull) {
  SimDisk disk({.capacity_bytes = 10});
  append(*open(disk, "a", WriteMode::kTruncate), "1234567");
  const auto file = open(disk, "b", WriteMode::kTruncate);
  const std::string_view text = "xyzw";
  const auto failed = file->append(std::as_bytes(std::span(text.data(), text.size())));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message(), "b: cannot write: No space left on device");
  EXPECT_EQ(content(disk, "b"), "xyz");
  EXPECT_EQ(*disk.free_bytes("/"), 0U);
  EXPECT_TRUE(disk.remove_all("a").ok());
  EXPECT_EQ(*disk.free_bytes("/"), 7U);
  append(*file, "1234567");
}

// The same seed and history give the same disk.
TEST(SimDisk, CrashIsDeterministic) {
  const auto history = [](std::uint64_t seed) {
    SimDisk disk({.seed = seed, .torn_tail = TornTail::kGarbage});
    append(*open(disk, "f", WriteMode::kTruncate), "0123456789");
    CHECK(disk.sync_directory("/").ok());
    return content(*disk.after_crash(), "f");
  };
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(history(seed), history(seed)) << "seed " << seed;
    seen.insert(history(seed));
  }
  EXPECT_GT(seen.size(), 20U);
}

}  // namespace
}  // namespace gossamer::host
