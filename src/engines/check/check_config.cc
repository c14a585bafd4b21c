// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_config.h"

#include <fmt/format.h>
#include <gossamer/check.pb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/nearest_name.h"

namespace gossamer::engine {
namespace {

struct Key {
  std::string_view name;
  std::string_view help;
  std::uint64_t CheckConfig::* value;
  std::uint64_t min;
  std::uint64_t max;
};

constexpr std::array kKeys = {
    Key{"things", "that members hold, as they would hold shards", &CheckConfig::things, 1, 4000},
    Key{"elements", "f32 numbers that all members sum in a step", &CheckConfig::elements, 1, 1ULL << 22},
    Key{"pause_ms", "milliseconds between steps", &CheckConfig::pause_ms, 0, 60'000},
    Key{"steps", "to do; 0: until the run is stopped", &CheckConfig::steps, 0, 1'000'000'000'000'000},
};

constexpr std::string_view kFix = "'gossamer coordinator check --help' lists all keys";

Error usage(std::string what, std::string_view got, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .what = std::move(what),
          .got = fmt::format("'{}'", got),
          .expected = std::move(expected),
          .fix = std::string(kFix)};
}

Result<void> set(CheckConfig& config, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  const std::string_view name = setting.substr(0, equals);
  const std::string_view text = equals == std::string_view::npos ? "" : setting.substr(equals + 1);
  const auto* const key = std::ranges::find(kKeys, name, &Key::name);
  if (key == kKeys.end()) {
    std::vector<std::string_view> names;
    for (const Key& known : kKeys) names.push_back(known.name);
    return usage(fmt::format("there is no key '{}'", name), setting,
                 fmt::format("a key such as '{}'", nearest_name(name, names)));
  }
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < key->min || value > key->max) {
    return usage(fmt::format("cannot set {}", name), text,
                 fmt::format("an integer {}..{}", key->min, key->max));
  }
  config.*(key->value) = value;
  return {};
}

// Names the first key that is out of its range, if any.
std::optional<std::string> out_of_range(const CheckConfig& config) {
  for (const Key& key : kKeys) {
    const std::uint64_t value = config.*(key.value);
    if (value < key.min || value > key.max) return fmt::format("{}={}", key.name, value);
  }
  if (config.things * config.elements > kMostCheckNumbers)
    return fmt::format("things={} elements={}", config.things, config.elements);
  return std::nullopt;
}

}  // namespace

Result<CheckConfig> parse_check_config(std::span<const std::string> settings) {
  CheckConfig config;
  for (const std::string& setting : settings) {
    if (auto done = set(config, setting); !done.ok()) return done.error();
  }
  if (const auto wrong = out_of_range(config)) {
    return usage("a step of this check is too much work", *wrong,
                 fmt::format("things * elements of at most {}", kMostCheckNumbers));
  }
  return config;
}

std::string check_config_help() {
  const CheckConfig defaults;
  std::string text;
  for (const Key& key : kKeys) {
    const std::string setting = fmt::format("{}={}", key.name, defaults.*(key.value));
    text += fmt::format("  {:<16} {}, {}..{}\n", setting, key.help, key.min, key.max);
  }
  return text;
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

}  // namespace gossamer::engine
