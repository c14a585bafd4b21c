// SPDX-License-Identifier: Apache-2.0
//
// The config of a run as a user writes it: CONFIG and KEYS of `train` and `coordinator`.
//
// Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "commands/engine/engine_list.h"
#include "host/api/disk.h"
#include "settings/key_table.h"

namespace gossamer::commands {

struct WrittenConfig {
  std::string config;  // a preset, or the path of a TOML file; may be empty
  std::vector<std::string> overrides;
  std::string skip_bad = {};  // of --skip-bad
  // Words that the command takes beside presets.
  std::vector<std::string_view> other_words = {};
  bool engines = false;  // the name of an engine is a config too: its keys as they are from the start
};

// Whether a word is a key=value, and no CONFIG.
[[nodiscard]] bool is_key_word(std::string_view word);

struct ChosenConfig {
  const EngineEntry& engine;
  // Preset or file, overrides, --skip-bad; without the key `engine`.
  std::vector<settings::KeySetting> settings;
  settings::Values values;
};
// Finds the engine and reads all settings, in order. The engine has not checked the values. kUsage for words
// that name another engine than the config.
[[nodiscard]] Result<ChosenConfig> choose_config(host::Disk& disk, const EngineList& engines,
                                                 const WrittenConfig& written);

// The config of a run that is to go on without CONFIG: its engine, by the run.toml of the directory, with the
// user's KEYS alone. The values are the engine's defaults and those keys; run.toml has the others. kUsage
// where there is no training run in the directory.
[[nodiscard]] Result<ChosenConfig> config_of_run(host::Disk& disk, const EngineList& engines,
                                                 const std::string& directory, const WrittenConfig& written);

// The words KEYS of a user without the key `engine`, which is no key of the engine. kUsage if it names
// another one. `config`: the words by which people know it, "preset xmc".
[[nodiscard]] Result<std::vector<std::string>> without_engine(const std::vector<std::string>& words,
                                                              const EngineEntry& engine,
                                                              std::string_view config);

}  // namespace gossamer::commands
