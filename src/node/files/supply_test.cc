// SPDX-License-Identifier: Apache-2.0
#include "node/files/supply.h"

#include <gmock/gmock.h>
#include <gossamer/delivery.pb.h>
#include <gtest/gtest.h>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;

Supply some_supply() {
  return {.files = {{.name = "train.cache", .manifest = {std::byte{7}}, .bytes = 123},
                    {.name = "step-000000000060.3.part",
                     .manifest = {std::byte{8}},
                     .bytes = 9,
                     .path = "/run/checkpoints/step-000000000060.3.part"}},
          .directory = "/run/cache",
          .deliver = "/run/parts",
          .most_bytes = 1ULL << 40};
}

// What a coordinator writes is what a member reads.
TEST(Supply, TravelsWhole) {
  const auto read = read_supply(supply_bytes(some_supply()));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, some_supply());
}

// A file lies in the directory of the Supply or under a path of its own. Its manifest lies in the directory.
TEST(Supply, SaysWhereFilesLie) {
  const Supply supply = some_supply();
  const StoredPlace own = supply.place_of(supply.files[0]);
  EXPECT_EQ(own.path, "/run/cache/train.cache");
  EXPECT_EQ(own.manifest, "/run/cache/train.cache.manifest");
  const StoredPlace other = supply.place_of(supply.files[1]);
  EXPECT_EQ(other.path, "/run/checkpoints/step-000000000060.3.part");
  EXPECT_EQ(other.manifest, "/run/cache/step-000000000060.3.part.manifest");
  EXPECT_EQ(supply.find("train.cache"), &supply.files[0]);
  EXPECT_EQ(supply.find("test.cache"), nullptr);
}

// An added file is found by its manifest where it lies, until its size is another one.
TEST(Supply, AddedFilesAreFound) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("/run/cache").ok());
  ASSERT_TRUE(disk.make_directories("/elsewhere").ok());
  ASSERT_TRUE(host::replace_file(disk, "/elsewhere/some.cache", "these are records").ok());
  Supply supply{.directory = "/run/cache", .deliver = "/run/parts"};
  ASSERT_TRUE(add_file(disk, supply, "records", "/elsewhere/some.cache").ok());
  ASSERT_EQ(supply.files.size(), 1U);
  EXPECT_EQ(supply.files[0].bytes, 17U);
  const StoredPlace place = supply.place_of(supply.files[0]);
  const auto found = find_stored(disk, place, supply.files[0].manifest);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, "/elsewhere/some.cache");
  EXPECT_EQ(found->manifest.name(), "records");
  ASSERT_TRUE(host::replace_file(disk, "/elsewhere/some.cache", "other records").ok());
  EXPECT_EQ(find_stored(disk, place, supply.files[0].manifest), std::nullopt);
  EXPECT_FALSE(add_file(disk, supply, "vocabulary.json").ok());
  EXPECT_EQ(supply.files.size(), 1U);
}

// Bytes of something else, names that lead elsewhere or come twice, ids of another size and missing
// directories are refused.
TEST(Supply, RefusesWhatItCannotRead) {
  const std::string good = supply_bytes(some_supply());
  const auto changed = [&](auto&& change) {
    wire::Supply message;
    EXPECT_TRUE(message.ParseFromString(good));
    change(message);
    return message.SerializeAsString();
  };
  std::vector<std::string> wrong = {
      "\xff\xff", changed([](auto& one) { one.mutable_files(0)->set_manifest("short"); }),
      changed([](auto& one) { *one.mutable_files(1) = one.files(0); }),
      changed([](auto& one) { one.clear_directory(); }), changed([](auto& one) { one.clear_deliver(); })};
  for (const char* const name : {"", "..", "../train.cache", "step-000000000060.1/../../x.part",
                                 "/etc/passwd", ".hidden", "train.cache.tmp"})
    wrong.push_back(changed([&](auto& one) { one.mutable_files(0)->set_name(name); }));
  for (const std::string& bytes : wrong) {
    const auto read = read_supply(bytes);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData);
    EXPECT_THAT(read.error().message(), HasSubstr("which files the run needs"));
  }
}

}  // namespace
}  // namespace gossamer::node
