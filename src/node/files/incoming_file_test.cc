// SPDX-License-Identifier: Apache-2.0
#include "node/files/incoming_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kChunk = std::size_t{1} << 20;

std::string patterned(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 977);
  return bytes;
}

// Three chunks, the last one small, as some other machine has them.
struct There {
  There() {
    EXPECT_TRUE(host::replace_file(disk, "/there", bytes).ok());
    auto described = describe_file(disk, "/there", "train.cache");
    EXPECT_TRUE(described.ok());
    if (described.ok()) file = *std::move(described);
  }
  [[nodiscard]] Slices chunk(std::uint64_t number) const {
    return {Slice::of(bytes.substr(number * kChunk, kChunk))};
  }
  std::string bytes = patterned(2 * kChunk + 5);
  host::SimDisk disk;
  std::optional<StoredFile> file;
};

std::shared_ptr<IncomingFile> begin(host::Disk& disk, const Sha256& id) {
  auto file = IncomingFile::open(disk, "/data/train.cache", id);
  EXPECT_TRUE(file.ok()) << file.error().message();
  return file.ok() ? *file : nullptr;
}

// Chunks in any order make the file. It is then found by its manifest, and by no other.
TEST(IncomingFile, AppearsWhole) {
  const There there;
  host::SimDisk disk;
  const auto file = begin(disk, there.file->manifest.id());
  EXPECT_FALSE(file->manifest().has_value());
  ASSERT_TRUE(file->know(there.file->manifest).ok());
  for (const std::uint64_t chunk : {2U, 0U, 1U}) {
    EXPECT_FALSE(*disk.exists("/data/train.cache"));
    ASSERT_TRUE(file->write(chunk, there.chunk(chunk)).ok());
  }
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(*host::read_text(disk, "/data/train.cache"), there.bytes);
  EXPECT_THAT(*disk.list("/data"), ::testing::ElementsAre("train.cache", "train.cache.manifest"));
  const StoredPlace place{.path = "/data/train.cache", .manifest = manifest_path("/data/train.cache")};
  EXPECT_TRUE(find_stored(disk, place, there.file->manifest.id()).has_value());
  EXPECT_FALSE(find_stored(disk, place, Sha256{}).has_value());
  ASSERT_TRUE(host::replace_file(disk, "/data/train.cache", "shorter").ok());
  EXPECT_FALSE(find_stored(disk, place, there.file->manifest.id()).has_value());
}

// A process that starts again has the chunks with the right hash. Chunks of other content do not count.
TEST(IncomingFile, GoesOnFromWhatIsThere) {
  const There there;
  host::SimDisk disk;
  {
    const auto file = begin(disk, there.file->manifest.id());
    ASSERT_TRUE(file->know(there.file->manifest).ok());
    for (const std::uint64_t chunk : {0U, 1U, 2U}) ASSERT_TRUE(file->write(chunk, there.chunk(chunk)).ok());
  }
  ASSERT_TRUE(host::replace_file(disk, "/data/train.cache.incoming/1", "torn").ok());
  const auto again = begin(disk, there.file->manifest.id());
  ASSERT_TRUE(again->manifest().has_value());
  EXPECT_EQ(again->here(), (cluster::ChunkSet{true, false, true}));
  ASSERT_TRUE(again->write(1, there.chunk(1)).ok());
  ASSERT_TRUE(again->finish().ok());
  EXPECT_EQ(*host::read_text(disk, "/data/train.cache"), there.bytes);

  const auto other = begin(disk, Sha256{});
  EXPECT_FALSE(other->manifest().has_value());
  EXPECT_TRUE(disk.list("/data/train.cache.incoming")->empty());
}

// A disk that is too small is told before anything is fetched, with the bytes needed. A disk that fills up
// later fails a write, and never makes a file.
TEST(IncomingFile, DiskIsFull) {
  const There there;
  host::SimDisk small;
  const auto file = begin(small, there.file->manifest.id());
  small.restart_count({.capacity_bytes = 3 * kChunk});
  const auto known = file->know(there.file->manifest);
  ASSERT_FALSE(known.ok());
  EXPECT_THAT(known.error().message(), HasSubstr("too little room"));
  EXPECT_THAT(known.error().message(), HasSubstr("4.2 MB"));

  host::SimDisk fills;
  const auto later = begin(fills, there.file->manifest.id());
  ASSERT_TRUE(later->know(there.file->manifest).ok());
  ASSERT_TRUE(later->write(0, there.chunk(0)).ok());
  fills.restart_count({.capacity_bytes = kChunk + 3000});
  EXPECT_FALSE(later->write(1, there.chunk(1)).ok());
  fills.restart_count({});
  EXPECT_TRUE(later->write(2, there.chunk(2)).ok());
  EXPECT_FALSE(later->finish().ok());
  EXPECT_FALSE(*fills.exists("/data/train.cache"));
}

}  // namespace
}  // namespace gossamer::node
