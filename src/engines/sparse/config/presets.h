// SPDX-License-Identifier: Apache-2.0
//
// Presets: named configs that `gossamer train NAME` starts from. Each is a TOML text like a user's own file.
// Thread rule: immutable, any thread.
#pragma once

#include <span>
#include <string_view>

namespace gossamer::sparse_engine {

struct Preset {
  std::string_view name;
  std::string_view help;  // one line
  std::string_view toml;
};

[[nodiscard]] std::span<const Preset> presets();

// The preset of that name, or null.
[[nodiscard]] const Preset* find_preset(std::string_view name);

}  // namespace gossamer::sparse_engine
