// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_configuration.h"

#include <gossamer/sparse_fleet.pb.h>
#include <gtest/gtest.h>

namespace gossamer::node {
namespace {

FleetConfiguration some() {
  FleetConfiguration one{
      .config = {},
      .cache = {.directory = "/run/cache", .records = "/data/records.cache"},
      .deliver = "/run/nodes/parts",
      .run = "0a1b",
      .checkpoints = "/run/checkpoints",
      .start = StepNumber(60),
      .begin_from = "/run/kept",
      .one_machine = true,
      .shard_shift = 5,
      .steps = 70,
      .features = 80,
      .labels = 90,
      .data = {{.name = "train.cache", .manifest = {std::byte{7}}, .bytes = 123},
               {.name = "step-000000000060.3.part", .manifest = {std::byte{8}}, .bytes = 9}}};
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
  EXPECT_EQ(read->cache.directory, told.cache.directory);
  EXPECT_EQ(read->cache.records, told.cache.records);
  EXPECT_EQ(read->deliver, told.deliver);
  EXPECT_EQ(read->run, told.run);
  EXPECT_EQ(read->checkpoints, told.checkpoints);
  EXPECT_EQ(read->start, StepNumber(60));
  EXPECT_EQ(read->begin_from, told.begin_from);
  EXPECT_TRUE(read->one_machine);
  EXPECT_EQ(read->shard_shift, 5U);
  EXPECT_EQ(read->steps, 70U);
  EXPECT_EQ(read->features, 80U);
  EXPECT_EQ(read->labels, 90U);
  EXPECT_EQ(read->data, told.data);
}

// Bytes of something else, a key that this version does not know, and a value out of its range are refused.
// Shards beyond all bounds, and files that lie elsewhere or have no manifest, are refused too.
TEST(FleetConfiguration, RefusesWhatItCannotRead) {
  const std::string good = fleet_configuration_bytes(some());
  const auto changed = [&](auto&& change) {
    sparse_fleet::Configuration message;
    EXPECT_TRUE(message.ParseFromString(good));
    change(message);
    return message.SerializeAsString();
  };
  const std::vector<std::string> wrong = {
      "\xff\xff",
      changed([](auto& one) { one.set_config("[train]\nbatches = 3\n"); }),
      changed([](auto& one) { one.set_config("[train]\nbatch = 0\n"); }),
      changed([](auto& one) { one.set_shard_shift(60); }),
      changed([](auto& one) { one.mutable_data(0)->set_name("../train.cache"); }),
      changed([](auto& one) { one.mutable_data(0)->set_name("step-000000000060.1/../../x.part"); }),
      changed([](auto& one) { one.mutable_data(0)->set_name("step-000000000060..part"); }),
      changed([](auto& one) { one.mutable_data(0)->set_manifest("short"); })};
  for (const std::string& bytes : wrong) {
    const auto read = read_fleet_configuration(bytes);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData) << read.error().message();
  }
}

}  // namespace
}  // namespace gossamer::node
