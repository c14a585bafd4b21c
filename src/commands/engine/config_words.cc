// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/config_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/nearest_name.h"
#include "host/api/files.h"
#include "settings/toml.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kMostConfig = std::size_t{1} << 20;

Error unknown_preset(const EngineList& engines, const std::string& word,
                     std::vector<std::string_view> names) {
  for (const EngineEntry& engine : engines.all()) {
    for (const PresetText& preset : engine.presets) names.push_back(preset.name);
  }
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = fmt::format("there is no preset '{}'", word),
          .got = {},
          .expected = fmt::format("a preset such as '{}' (all: {}), or the path of a TOML file",
                                  nearest_name(word, names), fmt::join(names, ", ")),
          .fix = "'gossamer train --help' describes the presets"};
}

struct Base {
  const EngineEntry& engine;
  std::vector<settings::KeySetting> settings;
};

// The settings of a preset or file.
Result<Base> read_base(host::Disk& disk, const EngineList& engines, const WrittenConfig& written) {
  const std::string& config = written.config;
  if (config.empty()) return Base{.engine = engines.first(), .settings = {}};
  if (const auto named = engines.find_preset(config)) {
    auto settings = settings::read_settings(*named->engine.keys, named->preset.toml,
                                            fmt::format("preset {}", named->preset.name));
    if (!settings.ok()) return settings.error();
    return Base{.engine = named->engine, .settings = *std::move(settings)};
  }
  const bool looks_like_path = config.find('/') != std::string::npos || config.ends_with(".toml");
  const auto there = disk.exists(config);
  if (!looks_like_path && (!there.ok() || !*there))
    return unknown_preset(engines, config, written.other_words);
  const auto text = host::read_text(disk, config, kMostConfig);
  if (!text.ok()) return text.error();
  const auto engine = engines.of_config(*text, config);
  if (!engine.ok()) return engine.error();
  auto settings = settings::read_settings(*(*engine)->keys, *text, config);
  if (!settings.ok()) return settings.error();
  return Base{.engine = **engine, .settings = *std::move(settings)};
}

}  // namespace

Result<ChosenConfig> choose_config(host::Disk& disk, const EngineList& engines,
                                   const WrittenConfig& written) {
  auto base = read_base(disk, engines, written);
  if (!base.ok()) return base.error();
  std::vector<settings::KeySetting> settings = std::move(base->settings);
  for (const std::string& text : written.overrides) {
    auto setting = settings::parse_setting(text, "train.batch=256");
    if (!setting.ok()) return setting.error();
    settings.push_back(std::move(*setting));
  }
  if (!written.skip_bad.empty())
    settings.push_back({.name = "data.skip_bad", .text = written.skip_bad, .where = "--skip-bad"});
  settings::Values values = base->engine.keys->defaults();
  if (auto done = values.apply(settings); !done.ok()) return done.error();
  return ChosenConfig{.engine = base->engine, .settings = std::move(settings), .values = std::move(values)};
}

}  // namespace gossamer::commands
