// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/rank_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::commands {
namespace {

constexpr const char* kRankDirectory = "/parts";
using Ranks = std::vector<std::uint32_t>;

// Ranks that one node of a step has saved are loaded. Files of other steps and other names do not count.
TEST(RankFile, ComesBackAsItWas) {
  host::SimDisk disk;
  const auto load = [&](std::uint64_t step) { return load_ranks(disk, kRankDirectory, StepNumber(step)); };
  ASSERT_TRUE(load(9).ok());
  EXPECT_EQ(*load(9), std::nullopt);
  for (const Ranks& ranks : {Ranks{}, Ranks{7}, Ranks{1, 0, 100, 3, 2}}) {
    ASSERT_TRUE(save_ranks(disk, kRankDirectory, {.node = NodeId(4), .step = StepNumber(9)}, ranks).ok());
    ASSERT_TRUE(save_ranks(disk, kRankDirectory, {.node = NodeId(4), .step = StepNumber(19)}, Ranks{5}).ok());
    ASSERT_TRUE(host::replace_file(disk, "/parts/part-3-9", std::string("other")).ok());
    ASSERT_TRUE(load(9).ok());
    EXPECT_EQ(*load(9), ranks);
    EXPECT_EQ(*load(8), std::nullopt);
  }
}

// Any byte that changes, and any end that is cut off, is noticed.
TEST(RankFile, NoticesDamage) {
  host::SimDisk disk;
  ASSERT_TRUE(
      save_ranks(disk, kRankDirectory, {.node = NodeId(1), .step = StepNumber(2)}, Ranks{1, 2, 3}).ok());
  const std::string path = "/parts/ranks-1-2";
  const std::string good = *host::read_text(disk, path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    for (const std::string& spoilt : {bad, good.substr(0, at)}) {
      ASSERT_TRUE(host::replace_file(disk, path, spoilt).ok());
      const auto got = load_ranks(disk, kRankDirectory, StepNumber(2));
      ASSERT_FALSE(got.ok()) << at;
      EXPECT_EQ(got.error().kind, ErrorKind::kBadData);
    }
  }
}

}  // namespace
}  // namespace gossamer::commands
