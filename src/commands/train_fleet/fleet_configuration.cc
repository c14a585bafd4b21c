// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_configuration.h"

#include <fmt/format.h>
#include <gossamer/sparse_fleet.pb.h>

#include <utility>

#include "settings/toml.h"

namespace gossamer::commands {
namespace {

Error unreadable(std::string got) {
  return {.kind = ErrorKind::kBadData,
          .what = "cannot read the configuration of the sparse run",
          .got = std::move(got),
          .expected = "that of a run that 'gossamer train --nodes' prepared",
          .fix = "look whether coordinator and node run the same version"};
}

}  // namespace

std::string fleet_configuration_bytes(const FleetConfiguration& configuration) {
  sparse_fleet::Configuration message;
  message.set_config(settings::to_toml(sparse_engine::train_keys().values(configuration.config)));
  message.set_run(configuration.run);
  message.set_checkpoints(configuration.checkpoints);
  message.set_start(configuration.start.value);
  message.set_begin_from(configuration.begin_from);
  message.set_one_machine(configuration.one_machine);
  message.set_shard_shift(configuration.shard_shift);
  message.set_steps(configuration.steps);
  message.set_features(configuration.features);
  message.set_labels(configuration.labels);
  return message.SerializeAsString();
}

Result<FleetConfiguration> read_fleet_configuration(std::string_view bytes) {
  sparse_fleet::Configuration message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return unreadable(fmt::format("{} bytes that are none", bytes.size()));
  constexpr unsigned kMostShift = 31;
  if (message.shard_shift() > kMostShift)
    return unreadable(fmt::format("shards of 2^{} rows", message.shard_shift()));
  FleetConfiguration configuration{.config = {},
                                   .run = message.run(),
                                   .checkpoints = message.checkpoints(),
                                   .begin_from = message.begin_from(),
                                   .start = StepNumber(message.start()),
                                   .one_machine = message.one_machine(),
                                   .shard_shift = message.shard_shift(),
                                   .steps = message.steps(),
                                   .features = message.features(),
                                   .labels = message.labels()};
  auto config =
      settings::read_config(sparse_engine::train_keys(), message.config(), "the run's configuration");
  if (!config.ok()) return unreadable(config.error().message());
  configuration.config = *std::move(config);
  if (auto valid = sparse_engine::validate(configuration.config); !valid.ok())
    return unreadable(valid.error().message());
  return configuration;
}

}  // namespace gossamer::commands
