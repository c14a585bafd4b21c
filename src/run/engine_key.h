// SPDX-License-Identifier: Apache-2.0
//
// The key `engine` names the engine that the other keys of a config are for. It stands in no engine's table:
// a config is read by the keys of its engine, so the engine has to be known before.
//
// One engine of a program is not named: that of configs without the key. Its configs are written without it.
//
// Thread rule: plain values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "settings/toml.h"

namespace gossamer::run {

inline constexpr std::string_view kEngineKey = "engine";

// The engine of a run.
struct RunEngine {
  std::string name = {};
  std::string unnamed = {};  // the engine of configs without the key
};

// The value of the key in a TOML text. A value that is no text is described: "the integer 3".
struct EngineWord {
  std::string name;
  std::string where;  // "run.toml:3:10"
};
// Takes the key off a config. Nothing where it is not there.
[[nodiscard]] std::optional<EngineWord> take_engine(settings::TomlTable& config);

// The line of the key in a config's file; empty for an engine that is not named.
[[nodiscard]] std::string engine_line(const RunEngine& engine);

// kUsage: the run that is to go on is not of the engine that is wanted.
[[nodiscard]] Error other_engine(std::string where, std::string_view of_run, std::string_view wanted);

}  // namespace gossamer::run
