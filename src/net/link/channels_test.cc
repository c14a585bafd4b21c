// SPDX-License-Identifier: Apache-2.0
#include "net/link/channels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/human_bytes.h"
#include "base/test_generated_block.h"

namespace gossamer::net {
namespace {

std::string_view name_of(std::uint32_t channel) {
  const auto* const found =
      std::ranges::find(kChannelNames, channel, &std::pair<std::uint32_t, std::string_view>::first);
  return found == kChannelNames.end() ? "" : found->second;
}

std::string rows_of_channels() {
  std::string text =
      "| channel | user | sender | receiver | lane | most bytes of a message |\n|---|---|---|---|---|---|\n";
  for (const ChannelRule& row : channel_rules()) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", row.channel, name_of(row.channel),
                        name(row.sender), name(row.receiver), name(row.lanes), row.most_bytes);
  }
  return text;
}

// The page of the protocol shows the rows of the table, all of them and no others.
TEST(Channels, PageShowsTheRows) {
  EXPECT_EQ(block_difference(
                {.page = std::string(GOSSAMER_LINK_PAGE), .name = "channels", .text = rows_of_channels()}),
            "");
}

// Claim: a channel and a sender have one row at most, each channel has a name, and rows are in order.
TEST(Channels, OneRowEach) {
  std::set<std::pair<std::uint32_t, Sender>> seen;
  std::uint32_t last = 0;
  for (const ChannelRule& row : channel_rules()) {
    EXPECT_TRUE(seen.insert({row.channel, row.sender}).second) << row.channel;
    EXPECT_NE(name_of(row.channel), "") << row.channel;
    EXPECT_GE(row.channel, last);
    last = row.channel;
  }
}

// Claim: a joining member reaches no channel on which members work, and can make nobody hold more than a
// chunk.
TEST(Channels, JoiningMembersDoNotWork) {
  for (const ChannelRule& row : channel_rules()) {
    if (row.sender != Sender::kJoining) continue;
    EXPECT_TRUE(row.channel == kControlChannel || row.channel == kChunkRequests ||
                row.channel == kChunkAnswers || row.channel == kDeliveries || row.channel == kReports)
        << row.channel;
    EXPECT_LE(row.most_bytes, 17ULL << 20) << row.channel;
  }
}

// Claim: what members say to their coordinator cannot be said to another member. Large messages come from the
// coordinator alone. No member can make another node hold more than a chunk, or a boundary between two
// stages, of which that one knows nothing.
TEST(Channels, LittleIsHeldForAnotherMember) {
  for (const ChannelRule& row : channel_rules()) {
    if (row.sender == Sender::kCoordinator) {
      EXPECT_EQ(row.receiver, Receiver::kMember) << row.channel;
    } else if (row.receiver != Receiver::kCoordinator) {
      EXPECT_LE(row.most_bytes, row.channel == kPipelineSteps ? kMostBoundaryBytes : 17ULL << 20)
          << row.channel;
      EXPECT_NE(row.channel, kControlChannel);
      EXPECT_NE(row.channel, kQueryChannel);
    } else {
      EXPECT_LE(row.most_bytes, 17ULL << 20) << row.channel;
    }
  }
  for (const ChannelRule& row : rules_of_membership()) EXPECT_EQ(row.channel, kControlChannel);
  EXPECT_EQ(rules_of_membership().size(), 3U);
}

}  // namespace
}  // namespace gossamer::net
