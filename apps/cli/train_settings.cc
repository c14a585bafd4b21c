// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/train_settings.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/nearest_name.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/presets.h"
#include "host/api/files.h"
#include "settings/toml.h"

namespace gossamer::cli {
namespace {

Error unknown_preset(const std::string& word, std::vector<std::string_view> names) {
  for (const sparse_engine::Preset& preset : sparse_engine::presets()) names.push_back(preset.name);
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = fmt::format("there is no preset '{}'", word),
          .got = {},
          .expected = fmt::format("a preset such as '{}' (all: {}), or the path of a TOML file",
                                  nearest_name(word, names), fmt::join(names, ", ")),
          .fix = "'gossamer train --help' describes the presets"};
}

// The settings of a preset or file.
Result<std::vector<settings::KeySetting>> read_settings(Context& context, const WrittenSettings& written) {
  const std::string& config = written.config;
  if (const sparse_engine::Preset* preset = sparse_engine::find_preset(config); preset != nullptr) {
    return settings::read_settings(sparse_engine::train_keys(), preset->toml,
                                   fmt::format("preset {}", preset->name));
  }
  const bool looks_like_path = config.find('/') != std::string::npos || config.ends_with(".toml");
  auto there = context.disk.exists(config);
  if (!looks_like_path && (!there.ok() || !*there)) return unknown_preset(config, written.other_words);
  auto text = host::read_text(context.disk, config, std::size_t{1} << 20);
  if (!text.ok()) return text.error();
  return settings::read_settings(sparse_engine::train_keys(), *text, config);
}

}  // namespace

Result<std::vector<settings::KeySetting>> all_settings(Context& context, const WrittenSettings& written) {
  std::vector<settings::KeySetting> settings;
  if (!written.config.empty()) {
    auto base = read_settings(context, written);
    if (!base.ok()) return base.error();
    settings = std::move(*base);
  }
  for (const std::string& text : written.overrides) {
    auto setting = settings::parse_setting(text, "train.batch=256");
    if (!setting.ok()) return setting.error();
    settings.push_back(std::move(*setting));
  }
  if (!written.skip_bad.empty()) {
    settings.push_back({.name = "data.skip_bad", .text = written.skip_bad, .where = "--skip-bad"});
  }
  return settings;
}

}  // namespace gossamer::cli
