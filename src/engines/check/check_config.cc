// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_config.h"

#include <fmt/format.h>
#include <gossamer/check.pb.h>

#include <optional>
#include <utility>

namespace gossamer::check {
namespace {

// What is too much of a configuration whose members would compute for too long, if anything.
std::optional<std::string> too_much(const CheckConfig& config) {
  if (config.things * config.elements <= kMostCheckNumbers) return std::nullopt;
  return fmt::format("things={} elements={}", config.things, config.elements);
}

// Names the first key that is out of its range, if any.
std::optional<std::string> out_of_range(const CheckConfig& config) {
  CheckConfig scratch;
  for (const settings::Key& key : check_keys().all()) {
    std::string setting = fmt::format("{}={}", key.name, check_keys().get(config, key));
    if (!check_keys().set_word(scratch, setting).ok()) return setting;
  }
  return too_much(config);
}

}  // namespace

const settings::KeyTable<CheckConfig>& check_keys() {
  using settings::key;
  using C = CheckConfig;
  static const settings::KeyTable<C> table(
      {.listed_by = "gossamer coordinator check --help"},
      {key<&C::things>("things", {.min = 1, .max = 4000}, "that members hold, as they would hold shards"),
       key<&C::elements>("elements", {.min = 1, .max = 1 << 22},
                         "f32 numbers that all members sum in a step"),
       key<&C::pause_ms>("pause_ms", {.max = 60'000}, "milliseconds between steps"),
       key<&C::steps>("steps", {.max = 1e15}, "to do; 0: until the run is stopped")});
  return table;
}

Result<void> validate(const CheckConfig& config) {
  const auto wrong = too_much(config);
  if (!wrong.has_value()) return {};
  return Error{.kind = ErrorKind::kUsage,
               .what = "a step of this check is too much work",
               .got = fmt::format("'{}'", *wrong),
               .expected = fmt::format("things * elements of at most {}", kMostCheckNumbers),
               .fix = check_keys().list_hint()};
}

std::string check_config_bytes(const CheckConfig& config) {
  check::Config message;
  message.set_things(config.things);
  message.set_elements(config.elements);
  message.set_pause_ms(config.pause_ms);
  message.set_steps(config.steps);
  return message.SerializeAsString();
}

Result<CheckConfig> read_check_config(std::string_view bytes) {
  Error error{.kind = ErrorKind::kBadData,
              .what = "cannot read the configuration of the fleet check",
              .got = fmt::format("{} bytes that are none", bytes.size()),
              .expected = "that of a check",
              .fix = "look whether coordinator and node run the same version"};
  check::Config message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return error;
  const CheckConfig config{.things = message.things(),
                           .elements = message.elements(),
                           .pause_ms = message.pause_ms(),
                           .steps = message.steps()};
  if (auto wrong = out_of_range(config)) {
    error.got = std::move(*wrong);
    error.expected = "values that a coordinator takes";
    return error;
  }
  return config;
}

}  // namespace gossamer::check
