// SPDX-License-Identifier: Apache-2.0
#include "tensors/model_directory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::tensors {
namespace {

constexpr char kWhere[] = "runs/model";

// Puts a directory with one file of this content in its place.
Result<void> put(host::Disk& disk, const std::string& content) {
  return replace_directory(disk, kWhere, [&](const std::string& fresh) {
    return host::replace_file(disk, fresh + "/model.json", content);
  });
}
std::string found(host::Disk& disk) {
  const auto where = find_directory(disk, kWhere);
  const auto text = where.ok() ? host::read_text(disk, *where + "/model.json") : where.error();
  return text.ok() ? *text : "nothing";
}

// Claim: a power failure at any operation leaves the earlier directory or the new one, whole, and the next
// replacement works.
TEST(ReplaceDirectory, APowerFailureLeavesOneOfTheTwo) {
  for (const std::string before : {"", "old"}) {
    std::uint64_t operations = 1;
    for (std::uint64_t at = 0; at < operations; ++at) {
      host::SimDisk disk({.seed = at});
      ASSERT_TRUE(disk.make_directories("runs").ok() && disk.sync_directory(".").ok());
      ASSERT_TRUE(before.empty() || put(disk, before).ok());
      disk.restart_count({.seed = at});
      if (at == 0) {
        const auto copy = disk.after_crash();
        ASSERT_TRUE(put(*copy, "new").ok());
        EXPECT_EQ(found(*copy), "new");
        operations = copy->operations();
      }
      disk.restart_count({.seed = at, .crash_at_operation = at});
      (void)put(disk, "new");
      const auto after = disk.after_crash();
      const std::string content = found(*after);
      EXPECT_TRUE(content == "new" || content == (before.empty() ? "nothing" : before))
          << at << ": " << content;
      ASSERT_TRUE(put(*after, "next").ok()) << at;
      EXPECT_EQ(found(*after), "next");
    }
    EXPECT_GT(operations, 5U);
  }
}

// Claim: a directory that cannot be written leaves the earlier one, and its error is told.
TEST(ReplaceDirectory, AnErrorLeavesTheEarlierOne) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("runs").ok() && put(disk, "old").ok());
  const auto failed = replace_directory(
      disk, kWhere, [](const std::string&) { return Result<void>(Error{.what = "no room"}); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().what, "no room");
  EXPECT_EQ(found(disk), "old");
  EXPECT_FALSE(*disk.exists("runs/model.tmp"));
}

class ShardsTest : public testing::Test {
 protected:
  ShardsTest() { EXPECT_TRUE(disk_.make_directories("m").ok()); }

  Result<WrittenShards> write(std::uint64_t most) {
    std::vector<TensorSource> tensors;
    for (const char* name : {"a", "b", "c"})
      tensors.push_back(vector_tensor<float>(name, DType::kF32, values_));
    return write_shards(disk_, "m", std::move(tensors), most);
  }

  host::SimDisk disk_;
  std::vector<float> values_ = std::vector<float>(100, 1.5F);
};

// Claim: a shard is closed before it would pass the limit, a larger tensor has one of its own, and each
// tensor is in the file that the map names.
TEST_F(ShardsTest, AreCutBeforeTheLimit) {
  for (const auto& [most, count] :
       {std::pair<std::uint64_t, std::size_t>{1, 3}, {799, 3}, {800, 2}, {1200, 1}}) {
    const auto written = write(most);
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(written->shards.size(), count) << most;
    EXPECT_EQ(written->total_size, 1200U);
    std::map<std::string, std::string> seen;
    for (const ShardEntry& shard : written->shards) {
      const auto take = [&](const std::string& path, const std::string& name, const TensorView& tensor) {
        EXPECT_EQ(path, "m/" + shard.file);
        EXPECT_EQ(tensor.bytes.size(), 400U);
        seen[name] = shard.file;
        return Result<void>();
      };
      ASSERT_TRUE(read_shard(disk_, "m", shard, take).ok());
    }
    EXPECT_EQ(seen, written->weight_map);
  }
}

// Claim: a shard of another size or with one other byte is refused, and named.
TEST_F(ShardsTest, RefusesOthers) {
  const auto written = write(kMaxShardBytes);
  ASSERT_TRUE(written.ok());
  const ShardEntry& shard = written->shards[0];
  const std::string path = "m/" + shard.file;
  const std::string right = *host::read_text(disk_, path);
  std::string wrong = right;
  wrong[right.size() / 2] = static_cast<char>(wrong[right.size() / 2] ^ 1);
  for (const std::string& content : {right + "x", right.substr(1), wrong}) {
    ASSERT_TRUE(host::replace_file(disk_, path, content).ok());
    const auto mapped = map_shard(disk_, "m", shard);
    ASSERT_FALSE(mapped.ok());
    EXPECT_EQ(mapped.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(mapped.error().where, path);
  }
  ASSERT_TRUE(host::replace_file(disk_, path, right).ok());
  EXPECT_TRUE(map_shard(disk_, "m", shard).ok());
}

// Claim: a shard that is gone or of another size is found without reading any, and named.
TEST_F(ShardsTest, SizesAreChecked) {
  const auto written = write(800);
  ASSERT_TRUE(written.ok());
  ASSERT_EQ(written->shards.size(), 2U);
  EXPECT_TRUE(check_shard_sizes(disk_, "m", written->shards).ok());
  for (const ShardEntry& shard : written->shards) {
    const std::string path = "m/" + shard.file;
    const std::string right = *host::read_text(disk_, path);
    ASSERT_TRUE(host::replace_file(disk_, path, right + "x").ok());
    const auto longer = check_shard_sizes(disk_, "m", written->shards);
    ASSERT_TRUE(disk_.remove_all(path).ok());
    const auto gone = check_shard_sizes(disk_, "m", written->shards);
    for (const auto& checked : {longer, gone}) {
      ASSERT_FALSE(checked.ok());
      EXPECT_NE(checked.error().message().find(path), std::string::npos) << checked.error().message();
      EXPECT_NE(checked.error().fix, "");
    }
    ASSERT_TRUE(host::replace_file(disk_, path, right).ok());
  }
  EXPECT_TRUE(check_shard_sizes(disk_, "m", written->shards).ok());
}

// Claim: a whole model is written with the text that is made of its files, and its model.json is found again,
// also under the name that a crash leaves.
TEST_F(ShardsTest, AWholeModelIsFound) {
  const auto save = [&](const std::string& directory) {
    return save_model_directory(
        disk_, directory, {.tensors = {vector_tensor<float>("a", DType::kF32, values_)}},
        [](const WrittenShards& files) { return files.weight_map.at("a") + " in " + files.shards[0].file; });
  };
  ASSERT_TRUE(save("whole").ok());
  const std::string file = shard_name(0, 1);
  auto found = read_model_text(disk_, "whole");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->text, file + " in " + file);
  EXPECT_EQ(found->directory, "whole");
  EXPECT_EQ(found->path, "whole/model.json");
  ASSERT_TRUE(disk_.rename("whole", "whole.old").ok());
  found = read_model_text(disk_, "whole");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->path, "whole.old/model.json");
  EXPECT_EQ(*disk_.file_size("whole.old/" + file), *disk_.file_size(found->directory + "/" + file));
  EXPECT_FALSE(read_model_text(disk_, "nowhere").ok());
}

}  // namespace
}  // namespace gossamer::tensors
