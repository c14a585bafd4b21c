// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_configuration.h"

#include <gossamer/sparse_fleet.pb.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gossamer::commands {
namespace {

FleetConfiguration some() {
  FleetConfiguration one{.config = {},
                         .run = "0a1b",
                         .checkpoints = "/run/checkpoints",
                         .begin_from = "/run/kept",
                         .start = StepNumber(60),
                         .one_machine = true,
                         .shard_shift = 5,
                         .steps = 70,
                         .features = 80,
                         .labels = 90};
  one.config.model.hidden = 48;
  one.config.train.lr = 0.1 + 0.2;
  return one;
}

// A member reads what a coordinator wrote, every key with all of its digits.
TEST(FleetConfiguration, TravelsWhole) {
  const FleetConfiguration told = some();
  const auto read = read_fleet_configuration(fleet_configuration_bytes(told));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->config, told.config);
  EXPECT_EQ(read->config.train.lr, told.config.train.lr);
  EXPECT_EQ(read->run, told.run);
  EXPECT_EQ(read->checkpoints, told.checkpoints);
  EXPECT_EQ(read->start, StepNumber(60));
  EXPECT_EQ(read->begin_from, told.begin_from);
  EXPECT_TRUE(read->one_machine);
  EXPECT_EQ(read->shard_shift, 5U);
  EXPECT_EQ(read->steps, 70U);
  EXPECT_EQ(read->features, 80U);
  EXPECT_EQ(read->labels, 90U);
}

// Bytes of something else, a key that this version does not know, a value out of its range, and shards beyond
// all bounds are refused.
TEST(FleetConfiguration, RefusesWhatItCannotRead) {
  const std::string good = fleet_configuration_bytes(some());
  const auto changed = [&](auto&& change) {
    sparse_fleet::Configuration message;
    EXPECT_TRUE(message.ParseFromString(good));
    change(message);
    return message.SerializeAsString();
  };
  const std::vector<std::string> wrong = {
      "\xff\xff", changed([](auto& one) { one.set_config("[train]\nbatches = 3\n"); }),
      changed([](auto& one) { one.set_config("[train]\nbatch = 0\n"); }),
      changed([](auto& one) { one.set_shard_shift(60); })};
  for (const std::string& bytes : wrong) {
    const auto read = read_fleet_configuration(bytes);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData) << read.error().message();
  }
}

}  // namespace
}  // namespace gossamer::commands
