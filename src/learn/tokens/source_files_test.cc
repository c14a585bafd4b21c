// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/source_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::tokens {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void put(host::SimDisk& disk, const std::string& path) {
  ASSERT_TRUE(disk.make_directories(host::parent(path)).ok());
  ASSERT_TRUE(host::replace_file(disk, path, "x").ok());
}

// Claim: names of JSON lines end in .jsonl or .ndjson, packed or not; no other name does.
TEST(SourceFiles, TellsJsonLinesByName) {
  for (const char* name : {"a.jsonl", "d/a.ndjson", "a.jsonl.gz", "a.jsonl.zst", "a.ndjson.gz", ".jsonl"}) {
    EXPECT_TRUE(names_json_lines(name)) << name;
  }
  for (const char* name :
       {"a.txt", "jsonl", "a.json", "a.jsonl.txt", "a.jsonl.gz.gz", "a.jsonl.xz", "", ".gz", "a.jsonl/b"}) {
    EXPECT_FALSE(names_json_lines(name)) << name;
  }
}

// Claim: a folder stands for all files below it in the order of the bytes of their whole paths, however deep
// they lie. Hidden files and folders are left out and counted, a folder once.
TEST(SourceFiles, FilesOfAFolder) {
  host::SimDisk disk;
  for (const char* path :
       {"t/b", "t/a/z", "t/a.txt", "t/a/c/d", "t/.git/x", "t/.git/y", "t/a/.hidden", "t/A", "other"}) {
    put(disk, path);
  }
  ASSERT_TRUE(disk.make_directories("t/empty").ok());
  for (const std::string source : {"t", "t/"}) {
    const auto found = files_of(disk, source);
    ASSERT_TRUE(found.ok());
    EXPECT_TRUE(found->is_folder);
    EXPECT_THAT(found->paths, ElementsAre("t/A", "t/a.txt", "t/a/c/d", "t/a/z", "t/b"));
    EXPECT_EQ(found->hidden, 2U);
  }
  EXPECT_THAT(files_of(disk, "t/empty")->paths, IsEmpty());
  EXPECT_TRUE(files_of(disk, "t/empty")->is_folder);
}

// Claim: a source that is no folder stands for itself, hidden, missing or standard input.
TEST(SourceFiles, FileStandsForItself) {
  host::SimDisk disk;
  put(disk, ".hidden");
  ASSERT_TRUE(disk.make_directories("-").ok());
  for (const char* source : {".hidden", "missing", "-", "/dev/stdin"}) {
    const auto found = files_of(disk, source);
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found->is_folder) << source;
    EXPECT_THAT(found->paths, ElementsAre(source));
    EXPECT_EQ(found->hidden, 0U);
  }
  EXPECT_TRUE(is_standard_input("-"));
  EXPECT_TRUE(is_standard_input("/dev/stdin"));
  EXPECT_FALSE(is_standard_input("stdin"));
}

// Claim: folders lie within each other up to a limit, beyond which the path is named.
TEST(SourceFiles, RefusesEndlessFolders) {
  host::SimDisk disk;
  std::string path = "t";
  for (std::size_t depth = 1; depth < kMostFolders; ++depth) path += "/t";
  put(disk, path + "/file");
  EXPECT_THAT(files_of(disk, "t")->paths, ElementsAre(path + "/file"));
  put(disk, path + "/t/file");
  const auto refused = files_of(disk, "t");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(refused.error().where, path + "/t");
  EXPECT_EQ(refused.error().got, "more than 64 folders within each other");
}

// Claim: an error of the disk below a folder is returned; no file is left out for it.
TEST(SourceFiles, DiskErrors) {
  host::SimDisk disk;
  put(disk, "t/a/b");
  disk.restart_count({});
  ASSERT_TRUE(files_of(disk, "t").ok());
  const std::uint64_t operations = disk.operations();
  for (std::uint64_t k = 1; k < operations; ++k) {
    disk.restart_count({.crash_at_operation = k});
    const auto found = files_of(disk, "t");
    ASSERT_FALSE(found.ok()) << k;
    EXPECT_EQ(found.error().kind, ErrorKind::kFailed);
  }
}

}  // namespace
}  // namespace gossamer::tokens
