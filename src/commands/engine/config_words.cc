// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/config_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "base/shell_word.h"
#include "host/api/files.h"
#include "run/run_directory.h"
#include "settings/toml.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kMostConfig = std::size_t{1} << 20;

Error unknown_preset(const EngineList& engines, const WrittenConfig& written) {
  std::vector<std::string_view> names = written.other_words;
  for (const EngineEntry& engine : engines.all()) {
    for (const PresetText& preset : engine.presets) names.push_back(preset.name);
  }
  for (const EngineEntry& engine : engines.all()) {
    const bool known = std::ranges::find(names, engine.name) != names.end();
    if (written.engines && !known) names.push_back(engine.name);
  }
  const std::string_view noun = written.engines ? "preset or engine" : "preset";
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = fmt::format("there is no {} '{}'", noun, written.config),
          .got = {},
          .expected = fmt::format("a {} such as '{}' (all: {}), or the path of a TOML file", noun,
                                  nearest_name(written.config, names), fmt::join(names, ", ")),
          .fix = "'gossamer train --help' describes the presets"};
}

Error config_missing(const WrittenConfig& written) {
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = "CONFIG is missing",
          .got = fmt::format("the key {}", quote(written.config)),
          .expected = "a preset such as xmc, or a TOML file, before all keys",
          .fix = fmt::format("xmc {}", shell_word(written.config))};
}

// The settings of a preset, a file or nothing.
struct Base {
  const EngineEntry& engine;
  std::vector<settings::KeySetting> settings;
  std::string name;  // for people
};

Result<Base> read_text(const EngineList& engines, std::string_view text, std::string name) {
  // It may have been cut off. With defaults alone a run would be another than was meant.
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = name,
                 .what = "the config is empty",
                 .got = fmt::format("{} without a setting", text.empty() ? "a file" : "blank lines"),
                 .expected = "lines such as [train] and batch = 256",
                 .fix = "check that this is the right file, or give a preset such as xmc"};
  }
  auto table = settings::parse_toml(text, name);
  if (!table.ok()) return table.error();
  const auto engine = engines.take_engine(*table);
  if (!engine.ok()) return engine.error();
  auto settings = settings::read_settings(*(*engine)->keys, *table);
  if (!settings.ok()) return settings.error();
  return Base{.engine = **engine, .settings = *std::move(settings), .name = std::move(name)};
}

Result<Base> read_preset(const EngineList::Named& named) {
  const std::string name = fmt::format("preset {}", named.preset.name);
  auto table = settings::parse_toml(named.preset.toml, name);
  if (!table.ok()) return table.error();
  const auto word = run::take_engine(*table);
  CHECK(!word || word->name == named.engine.name, name);
  auto settings = settings::read_settings(*named.engine.keys, *table);
  if (!settings.ok()) return settings.error();
  return Base{.engine = named.engine, .settings = *std::move(settings), .name = name};
}

Result<Base> read_base(host::Disk& disk, const EngineList& engines, const WrittenConfig& written) {
  const std::string& config = written.config;
  if (config.empty()) return Base{.engine = engines.first(), .settings = {}, .name = "no config"};
  if (const auto named = engines.find_preset(config)) return read_preset(*named);
  if (const EngineEntry* const engine = engines.find(config); written.engines && engine != nullptr)
    return Base{.engine = *engine, .settings = {}, .name = config};
  const bool looks_like_path = config.find('/') != std::string::npos || config.ends_with(".toml");
  const auto there = disk.exists(config);
  if (is_key_word(config) && (!there.ok() || !*there)) return config_missing(written);
  if (!looks_like_path && (!there.ok() || !*there)) return unknown_preset(engines, written);
  const auto text = host::read_text(disk, config, kMostConfig);
  if (!text.ok()) return text.error();
  return read_text(engines, *text, config);
}

// "seed=1": the first key that has a value from the start.
std::string example_of(const settings::Keys& keys) {
  const settings::Values values = keys.defaults();
  for (const settings::Key& key : keys.all()) {
    if (!values.text(key).empty()) return fmt::format("{}={}", key.name, values.text(key));
  }
  return "key=value";
}

// A directory without a run, or with a run.toml that is not as a run has written it.
Error no_run(host::Disk& disk, const std::string& directory) {
  Error error{.kind = ErrorKind::kUsage,
              .where = directory,
              .what = "there is no run to resume in this directory, and CONFIG is missing",
              .got = "no run.toml of a training run",
              .expected = "the directory of a run, or a config to begin with",
              .fix = "check --out, or give CONFIG: a preset such as xmc, or a TOML file"};
  const std::string path = run::RunPaths(directory).config();
  const auto summary = disk.exists(run::RunPaths(directory).summary());
  const auto checkpoints = disk.exists(run::RunPaths(directory).checkpoints());
  if ((summary.ok() && *summary) || (checkpoints.ok() && *checkpoints)) {
    error.what = "this run has lost its run.toml, without which it cannot go on";
    error.got = "other files of a run";
    error.fix = "restore run.toml from a copy, or begin a new run: give CONFIG and another --out";
  }
  const auto text = host::read_text(disk, path, kMostConfig);
  if (!text.ok()) return error;
  error.where = path;
  error.what = "the file is not as a training run has written it";
  error.got = text->empty() ? "an empty file" : "the first line " + quote(text->substr(0, text->find('\n')));
  error.expected = "a first line such as '# run 53cbf80b66', and the keys of the run";
  error.fix = "restore the file, or begin a new run: give CONFIG and another --out";
  return error;
}

Result<ChosenConfig> chosen(Base base, const WrittenConfig& written) {
  std::vector<settings::KeySetting> settings = std::move(base.settings);
  const auto words = without_engine(written.overrides, base.engine, base.name);
  if (!words.ok()) return words.error();
  for (const std::string& text : *words) {
    auto setting = settings::parse_setting(text, example_of(*base.engine.keys));
    if (!setting.ok()) return setting.error();
    settings.push_back(std::move(*setting));
  }
  if (!written.skip_bad.empty())
    settings.push_back({.name = "data.skip_bad", .text = written.skip_bad, .where = "--skip-bad"});
  settings::Values values = base.engine.keys->defaults();
  if (auto done = values.apply(settings); !done.ok()) return done.error();
  return ChosenConfig{.engine = base.engine, .settings = std::move(settings), .values = std::move(values)};
}

}  // namespace

bool is_key_word(std::string_view word) {
  return word.find('=') != std::string_view::npos && word.find('/') > word.find('=');
}

Result<ChosenConfig> choose_config(host::Disk& disk, const EngineList& engines,
                                   const WrittenConfig& written) {
  auto base = read_base(disk, engines, written);
  if (!base.ok()) return base.error();
  return chosen(*std::move(base), written);
}

Result<ChosenConfig> config_of_run(host::Disk& disk, const EngineList& engines, const std::string& directory,
                                   const WrittenConfig& written) {
  const auto name = run::engine_of_run(disk, directory, std::string(engines.first().name));
  if (!name.ok()) return name.error();
  if (!name->has_value()) return no_run(disk, directory);
  const std::string config = run::RunPaths(directory).config();
  const auto engine = engines.named(**name, config);
  if (!engine.ok()) return engine.error();
  return chosen({.engine = **engine, .settings = {}, .name = config}, written);
}

Result<std::vector<std::string>> without_engine(const std::vector<std::string>& words,
                                                const EngineEntry& engine, std::string_view config) {
  const std::string key = fmt::format("{}=", run::kEngineKey);
  std::vector<std::string> others;
  for (const std::string& word : words) {
    if (!word.starts_with(key)) {
      others.push_back(word);
      continue;
    }
    if (word.substr(key.size()) == engine.name) continue;
    return Error{.kind = ErrorKind::kUsage,
                 .what = "a key cannot change the engine of a config",
                 .got = fmt::format("'{}'", word),
                 .expected = fmt::format("'{}{}', which {} is for", key, engine.name, config),
                 .fix = "leave the key out, or give a config of the other engine"};
  }
  return others;
}

}  // namespace gossamer::commands
