// SPDX-License-Identifier: Apache-2.0
//
// A TrainConfig as a TOML file: a user's file, and run.toml, the resolved config of a run.
//
//   seed = 1
//   [train]
//   batch = 256
//
// Errors are kUsage with `where` = FILE:LINE:COLUMN. Thread rule: pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/sparse/config/config.h"

namespace gossamer::engine {

// One `key = value` in the order of the file, with its place for messages.
struct KeySetting {
  std::string name;   // "train.batch"
  std::string text;   // "256"
  std::string where;  // "run.toml:3:1", empty for the command line
};

// Reads the settings of a TOML text without applying them. It refuses unknown keys, wrong types and arrays;
// set_key checks ranges. `file` is for messages.
[[nodiscard]] Result<std::vector<KeySetting>> parse_toml(std::string_view text, std::string_view file);

// Reads a command line's "train.batch=256".
[[nodiscard]] Result<KeySetting> parse_override(std::string_view text);

// Applies settings in order, later ones win.
[[nodiscard]] Result<void> apply_settings(TrainConfig& config, const std::vector<KeySetting>& settings);

// Writes every key with its value, and its help as a comment. parse_toml + apply_settings give back an equal
// config.
[[nodiscard]] std::string to_toml(const TrainConfig& config);

}  // namespace gossamer::engine
