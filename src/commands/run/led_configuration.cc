// SPDX-License-Identifier: Apache-2.0
#include "commands/run/led_configuration.h"

#include <fmt/format.h>

#include "settings/key_table.h"
#include "settings/toml.h"

namespace gossamer::commands {
namespace {

struct Facts {
  std::string run = {};
  std::string checkpoints = {};
  std::string fingerprint = {};
  std::uint64_t start = 0;
  std::uint64_t steps = 0;
  std::string keys = {};
};

const settings::KeyTable<Facts>& keys() {
  using settings::key;
  static const settings::KeyTable<Facts> table(
      {.listed_by = "a coordinator"},
      {key<&Facts::run>("run", {}, "its id"), key<&Facts::checkpoints>("checkpoints", {}, "their directory"),
       key<&Facts::fingerprint>("fingerprint", {}, "of checkpoints"),
       key<&Facts::start>("start", {.max = 1e18}, "step"),
       key<&Facts::steps>("steps", {.max = 1e18}, "in all"), key<&Facts::keys>("keys", {}, "of the engine")});
  return table;
}

}  // namespace

std::string led_configuration_bytes(const LedConfiguration& configuration) {
  return settings::to_toml(keys().values({.run = configuration.run,
                                          .checkpoints = configuration.checkpoints,
                                          .fingerprint = configuration.fingerprint,
                                          .start = configuration.start.value,
                                          .steps = configuration.steps,
                                          .keys = configuration.keys}));
}

Result<LedConfiguration> read_led_configuration(const std::string& bytes) {
  auto facts = settings::read_config(keys(), bytes, "the run's configuration");
  if (!facts.ok()) {
    return Error{.kind = ErrorKind::kBadData,
                 .what = "cannot read the configuration of the run",
                 .got = facts.error().message(),
                 .expected = "that of a lead",
                 .fix = "look whether coordinator and node run the same version"};
  }
  return LedConfiguration{.run = std::move(facts->run),
                          .checkpoints = std::move(facts->checkpoints),
                          .fingerprint = std::move(facts->fingerprint),
                          .start = StepNumber(facts->start),
                          .steps = facts->steps,
                          .keys = std::move(facts->keys)};
}

}  // namespace gossamer::commands
