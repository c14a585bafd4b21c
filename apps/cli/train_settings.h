// SPDX-License-Identifier: Apache-2.0
//
// The settings of a training run's config that a user writes, for the commands that begin
// a run. Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/command.h"
#include "base/result.h"
#include "settings/key_table.h"

namespace gossamer::cli {

struct WrittenSettings {
  std::string config;  // a preset, or the path of a TOML file; may be empty
  std::vector<std::string> overrides;
  std::string skip_bad = {};  // of --skip-bad
  // Words that the command takes beside presets.
  std::vector<std::string_view> other_words = {};
};
// All of it, in order: preset or file, overrides, --skip-bad.
[[nodiscard]] Result<std::vector<settings::KeySetting>> all_settings(Context& context,
                                                                     const WrittenSettings& written);

}  // namespace gossamer::cli
