// SPDX-License-Identifier: Apache-2.0
//
// Every promise of host/api/disk.h that needs no crash, on both hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts.h"

namespace gossamer::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DiskConformance : public DiskTest {
 protected:
  // Expects a failure of the world that names `name` and the cause.
  template <class T>
  void expect_failed(const Result<T>& result, const std::string& name, std::string_view cause) {
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_EQ(result.error().kind, ErrorKind::kFailed);
    EXPECT_EQ(result.error().where, path(name));
    EXPECT_THAT(result.error().what, HasSubstr(cause));
  }
};

constexpr std::string_view kMissing = "No such file or directory";
constexpr std::string_view kIsDirectory = "Is a directory";
constexpr std::string_view kNotDirectory = "Not a directory";

// Bytes come back as they were written, for appends of all sizes and reads in pieces of any size.
TEST_P(DiskConformance, BytesComeBack) {
  std::string all;
  auto file = disk_->open_writable(path("f"), WriteMode::kTruncate);
  ASSERT_TRUE(file.ok());
  for (const std::size_t size : {0U, 1U, 7U, 4096U, 300000U}) {
    std::string part(size, '\0');
    for (std::size_t i = 0; i < size; ++i) part[i] = static_cast<char>((i * 31 + size) & 0xff);
    ASSERT_TRUE((*file)->append(bytes_of(part)).ok());
    all += part;
  }
  ASSERT_TRUE((*file)->sync().ok());
  ASSERT_TRUE((*file)->close().ok());
  for (const std::size_t piece : {1000U, 4096U, 400000U}) {
    auto reader = disk_->open_sequential(path("f"));
    ASSERT_TRUE(reader.ok());
    std::string got;
    std::vector<std::byte> room(piece);
    for (;;) {
      const auto size = (*reader)->read(room);
      ASSERT_TRUE(size.ok());
      if (*size == 0) break;
      // A read is shorter than asked only at the end.
      EXPECT_EQ(*size, std::min(piece, all.size() - got.size()));
      got += text_of(std::span(room).first(*size));
    }
    EXPECT_EQ(got, all) << "pieces of " << piece;
  }
}

// Reading past the end gives 0 bytes, again and again; so does an empty span.
TEST_P(DiskConformance, ReadPastEnd) {
  write("f", "abc");
  auto file = disk_->open_sequential(path("f"));
  ASSERT_TRUE(file.ok());
  std::array<std::byte, 8> room{};
  EXPECT_EQ(*(*file)->read({}), 0U);
  EXPECT_EQ(*(*file)->read(room), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*(*file)->read(room), 0U);
}

// kAppend continues a file and makes a missing one; kTruncate and kPrivate empty it.
TEST_P(DiskConformance, AppendAndTruncate) {
  write("f", "one", WriteMode::kAppend);
  write("f", " two", WriteMode::kAppend);
  EXPECT_EQ(read("f"), "one two");
  write("f", "three");
  EXPECT_EQ(read("f"), "three");
  write("f", "");
  EXPECT_EQ(read("f"), "");
  EXPECT_TRUE(*disk_->exists(path("f")));
  for (const char* name : {"f", "new"}) {
    write(name, "four", WriteMode::kPrivate);
    write(name, "5", WriteMode::kPrivate);
    EXPECT_EQ(read(name), "5");
  }
}

// A file that is destroyed without close() keeps what was appended.
TEST_P(DiskConformance, DestroyedWithoutClose) {
  {
    auto file = disk_->open_writable(path("f"), WriteMode::kTruncate);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->append(bytes_of("kept")).ok());
  }
  EXPECT_EQ(read("f"), "kept");
}

// A map shows the whole file, also after the name is gone. An empty file is an empty span.
TEST_P(DiskConformance, Map) {
  write("f", "some bytes");
  write("empty", "");
  const auto mapped = disk_->map(path("f"));
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE(disk_->remove_all(path("f")).ok());
  EXPECT_EQ(text_of((*mapped)->bytes()), "some bytes");
  const auto empty = disk_->map(path("empty"));
  ASSERT_TRUE(empty.ok()) << empty.error().message();
  EXPECT_THAT((*empty)->bytes(), IsEmpty());
}

// exists() and file_size() tell the truth.
TEST_P(DiskConformance, ExistsAndSize) {
  write("f", "12345");
  EXPECT_TRUE(*disk_->exists(path("f")));
  EXPECT_TRUE(*disk_->exists(directory_));
  EXPECT_FALSE(*disk_->exists(path("g")));
  EXPECT_FALSE(*disk_->exists(path("g/below")));
  EXPECT_FALSE(*disk_->exists(path("f/below")));
  EXPECT_EQ(*disk_->file_size(path("f")), 5U);
}

// Names are listed sorted by bytes, files and directories alike, without "." and "..".
TEST_P(DiskConformance, ListIsSorted) {
  EXPECT_THAT(*disk_->list(directory_), IsEmpty());
  for (const char* name : {"b", "a10", "Z", "a9", ".hidden", "\xc3\xa4"}) write(name, "");
  ASSERT_TRUE(disk_->make_directories(path("c/inner")).ok());
  EXPECT_THAT(*disk_->list(directory_), ElementsAre(".hidden", "Z", "a10", "a9", "b", "c", "\xc3\xa4"));
}

// make_directories() makes all missing directories and is content with existing ones.
TEST_P(DiskConformance, MakeDirectories) {
  ASSERT_TRUE(disk_->make_directories(path("a/b/c")).ok());
  ASSERT_TRUE(disk_->make_directories(path("a/b/c")).ok());
  ASSERT_TRUE(disk_->make_directories(path("a/b/d/")).ok());
  EXPECT_THAT(*disk_->list(path("a/b")), ElementsAre("c", "d"));
  write("f", "");
  expect_failed(disk_->make_directories(path("f")), "f", kNotDirectory);
  expect_failed(disk_->make_directories(path("f/below")), "f/below", kNotDirectory);
}

// A rename moves a file or a directory and replaces a file.
TEST_P(DiskConformance, Rename) {
  write("a", "new");
  write("b", "old");
  ASSERT_TRUE(disk_->rename(path("a"), path("b")).ok());
  EXPECT_EQ(read("b"), "new");
  EXPECT_FALSE(*disk_->exists(path("a")));
  ASSERT_TRUE(disk_->rename(path("b"), path("b")).ok());
  EXPECT_EQ(read("b"), "new");
  ASSERT_TRUE(disk_->make_directories(path("d")).ok());
  ASSERT_TRUE(disk_->rename(path("b"), path("d/c")).ok());
  ASSERT_TRUE(disk_->rename(path("d"), path("e")).ok());
  EXPECT_EQ(read("e/c"), "new");
  EXPECT_THAT(*disk_->list(directory_), ElementsAre("e"));
}

// A rename does not replace a directory by a file, a file by a directory, or a directory that holds
// something.
TEST_P(DiskConformance, RenameRefuses) {
  write("f", "text");
  ASSERT_TRUE(disk_->make_directories(path("d")).ok());
  ASSERT_TRUE(disk_->make_directories(path("full/inner")).ok());
  expect_failed(disk_->rename(path("f"), path("d")), "f", kIsDirectory);
  expect_failed(disk_->rename(path("d"), path("f")), "d", kNotDirectory);
  expect_failed(disk_->rename(path("d"), path("full")), "d", "Directory not empty");
  expect_failed(disk_->rename(path("full"), path("full/inner/x")), "full", "Invalid argument");
  expect_failed(disk_->rename(path("missing"), path("x")), "missing", kMissing);
  expect_failed(disk_->rename(path("f"), path("missing/x")), "f", kMissing);
  EXPECT_EQ(read("f"), "text");
  EXPECT_THAT(*disk_->list(directory_), ElementsAre("d", "f", "full"));
}

// remove_all() removes a file, or a directory with all of its content. It is content if nothing is there.
TEST_P(DiskConformance, RemoveAll) {
  ASSERT_TRUE(disk_->make_directories(path("a/b/c")).ok());
  write("a/f", "1");
  write("a/b/c/g", "2");
  write("h", "3");
  ASSERT_TRUE(disk_->remove_all(path("a")).ok());
  EXPECT_THAT(*disk_->list(directory_), ElementsAre("h"));
  ASSERT_TRUE(disk_->remove_all(path("h")).ok());
  ASSERT_TRUE(disk_->remove_all(path("h")).ok());
  ASSERT_TRUE(disk_->remove_all(path("not/there")).ok());
  EXPECT_THAT(*disk_->list(directory_), IsEmpty());
}

// A removed file can still be read through an open handle.
TEST_P(DiskConformance, OpenFileOutlivesItsName) {
  write("f", "text");
  auto file = disk_->open_sequential(path("f"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(disk_->remove_all(path("f")).ok());
  std::array<std::byte, 8> room{};
  EXPECT_EQ(*(*file)->read(room), 4U);
}

// Missing paths are errors that name the path and the cause.
TEST_P(DiskConformance, MissingPaths) {
  expect_failed(disk_->open_sequential(path("x")), "x", kMissing);
  expect_failed(disk_->open_writable(path("x/y"), WriteMode::kTruncate), "x/y", kMissing);
  expect_failed(disk_->map(path("x")), "x", kMissing);
  expect_failed(disk_->file_size(path("x")), "x", kMissing);
  expect_failed(disk_->list(path("x")), "x", kMissing);
  expect_failed(disk_->sync_directory(path("x")), "x", kMissing);
  expect_failed(disk_->lock(path("x")), "x", kMissing);
  expect_failed(disk_->free_bytes(path("x/y")), "x/y", kMissing);
}

// A directory is not a file, and a file not a directory.
TEST_P(DiskConformance, WrongKind) {
  write("f", "");
  ASSERT_TRUE(disk_->make_directories(path("d")).ok());
  expect_failed(disk_->open_sequential(path("d")), "d", kIsDirectory);
  expect_failed(disk_->open_writable(path("d"), WriteMode::kTruncate), "d", kIsDirectory);
  expect_failed(disk_->open_writable(path("d"), WriteMode::kAppend), "d", kIsDirectory);
  expect_failed(disk_->map(path("d")), "d", kIsDirectory);
  expect_failed(disk_->file_size(path("d")), "d", kIsDirectory);
  expect_failed(disk_->list(path("f")), "f", kNotDirectory);
  expect_failed(disk_->sync_directory(path("f")), "f", kNotDirectory);
  expect_failed(disk_->lock(path("f")), "f", kNotDirectory);
  expect_failed(disk_->open_sequential(path("f/below")), "f/below", kNotDirectory);
}

// Directories can be synced.
TEST_P(DiskConformance, SyncDirectory) {
  write("f", "text");
  EXPECT_TRUE(disk_->sync_directory(directory_).ok());
  EXPECT_EQ(read("f"), "text");
}

// There is free space beside a file, a directory, and a file that is still to be made.
TEST_P(DiskConformance, FreeBytes) {
  write("f", "text");
  for (const std::string& where : {directory_, path("f"), path("new")}) {
    const auto free = disk_->free_bytes(where);
    ASSERT_TRUE(free.ok()) << free.error().message();
    EXPECT_GT(*free, 4096U);
  }
}

// A lock is exclusive while it lives, per directory, and free afterwards.
TEST_P(DiskConformance, LockIsExclusive) {
  ASSERT_TRUE(disk_->make_directories(path("d")).ok());
  ASSERT_TRUE(disk_->make_directories(path("e")).ok());
  for (int round = 0; round < 3; ++round) {
    const auto lock = disk_->lock(path("d"));
    ASSERT_TRUE(lock.ok()) << lock.error().message();
    const auto second = disk_->lock(path("d"));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().kind, ErrorKind::kRefused);
    EXPECT_EQ(second.error().where, path("d"));
    EXPECT_THAT(second.error().fix, Not(IsEmpty()));
    EXPECT_TRUE(disk_->lock(path("e")).ok());
  }
  EXPECT_THAT(*disk_->list(path("d")), ElementsAre(".lock"));
}

INSTANTIATE_TEST_SUITE_P(Hosts, DiskConformance, ::testing::Values(HostKind::kPosix, HostKind::kSim),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace gossamer::host
