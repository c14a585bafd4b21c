// SPDX-License-Identifier: Apache-2.0
#include "commands/run/room_patience.h"

#include <gtest/gtest.h>

namespace gossamer::commands {
namespace {

Instant room_second(std::int64_t seconds) { return Instant{seconds * 1'000'000'000}; }

std::optional<node::SupplyCompanion::Failing> failed_at(std::int64_t seconds) {
  return node::SupplyCompanion::Failing{.at = room_second(seconds), .last = Error{.what = "no room"}};
}

// It waits for 30 s from the moment at which the run is to end, and says so once. Tries that failed before do
// not count.
TEST(RoomPatience, WaitsHalfAMinute) {
  RoomPatience patience;
  EXPECT_FALSE(patience.begins(std::nullopt, room_second(90)));
  EXPECT_TRUE(patience.begins(failed_at(40), room_second(100)));
  EXPECT_EQ(patience.why()->what, "no room");
  for (std::int64_t second = 101; second < 130; ++second) {
    EXPECT_FALSE(patience.begins(failed_at(second), room_second(second)));
    EXPECT_FALSE(patience.over()) << second;
  }
  EXPECT_FALSE(patience.begins(failed_at(130), room_second(130)));
  EXPECT_TRUE(patience.over());
}

// There is room after 20 s, and the file comes for two minutes. Nobody gives up meanwhile. If that try fails,
// the wait is over.
TEST(RoomPatience, WaitsWhileTheFileComes) {
  RoomPatience patience;
  EXPECT_TRUE(patience.begins(failed_at(100), room_second(100)));
  for (std::int64_t second = 120; second < 240; ++second) {
    EXPECT_FALSE(patience.begins(failed_at(120), room_second(second)));
    EXPECT_FALSE(patience.over()) << second;
  }
  EXPECT_FALSE(patience.begins(failed_at(240), room_second(240)));
  EXPECT_TRUE(patience.over());
}

// What is stored in between ends the wait. The next one has its own time.
TEST(RoomPatience, BeginsAnewOnceItIsStored) {
  RoomPatience patience;
  EXPECT_TRUE(patience.begins(failed_at(100), room_second(100)));
  EXPECT_FALSE(patience.begins(std::nullopt, room_second(125)));
  EXPECT_FALSE(patience.why());
  EXPECT_TRUE(patience.begins(failed_at(129), room_second(129)));
  EXPECT_FALSE(patience.begins(failed_at(131), room_second(131)));
  EXPECT_FALSE(patience.over());
}

}  // namespace
}  // namespace gossamer::commands
