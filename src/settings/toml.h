// SPDX-License-Identifier: Apache-2.0
//
// TOML: the one place that reads and writes it. A configuration's file has a section for the first part of
// its keys' names:
//
//   seed = 1
//   [train]
//   batch = 256
//
// Errors are kUsage with `where` = FILE:LINE:COLUMN. Thread rule: pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "settings/key_table.h"

namespace gossamer::settings {

struct TomlEntry;
using TomlTable = std::vector<TomlEntry>;  // in the order of names

struct TomlValue {
  struct Time {};  // a date or time
  // Without an initializer: it would need the TomlEntry that is declared below.
  std::variant<Time, std::string, std::int64_t, double, bool, std::vector<TomlValue>, TomlTable> value;
  std::string where = {};  // "run.toml:3:9"

  // Null if the value is of another type.
  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&value);
  }
};

struct TomlEntry {
  std::string name;
  std::string where;  // of the name
  TomlValue value;
};

// Any TOML text. `file` is for messages.
[[nodiscard]] Result<TomlTable> parse_toml(std::string_view text, std::string_view file);

// "the integer 3", "an array", for messages.
[[nodiscard]] std::string describe(const TomlValue& value);

// The settings of a TOML text, without applying them. It refuses unknown keys, wrong types and arrays; ranges
// are checked when a setting is applied. A removed key with the value that all runs have now is left out.
[[nodiscard]] Result<std::vector<KeySetting>> read_settings(const Keys& keys, std::string_view text,
                                                            std::string_view file);
// The same of a text that is parsed.
[[nodiscard]] Result<std::vector<KeySetting>> read_settings(const Keys& keys, const TomlTable& table);

// A configuration with the settings of a TOML text, otherwise as it is from the start.
template <class Config>
[[nodiscard]] Result<Config> read_config(const KeyTable<Config>& keys, std::string_view text,
                                         std::string_view file) {
  const auto settings = read_settings(keys, text, file);
  if (!settings.ok()) return settings.error();
  Config config;
  if (auto done = keys.apply(config, *settings); !done.ok()) return done.error();
  return config;
}

// Writes every key with its value, and its help as a comment. read_settings() and Values::apply() give back
// equal values.
[[nodiscard]] std::string to_toml(const Values& values);

}  // namespace gossamer::settings
