// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/simulation_preset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/nearest_name.h"
#include "commands/simulate/cluster_chaos_keys.h"
#include "commands/simulate/sparse_chaos_keys.h"
#include "commands/simulate/sparse_steps_keys.h"

namespace gossamer::commands {

std::span<const SimulationPreset> simulation_presets() {
  static constexpr std::array<SimulationPreset, 3> kPresets{{
      {.name = "cluster-chaos",
       .help = "a coordinator, its store, its members: who is in the run, who holds what, under faults",
       .keys_help = cluster_chaos_keys_help,
       .defects_help = cluster_chaos_defects_help,
       .prepare = prepare_cluster_chaos},
      {.name = "sparse-chaos",
       .help = "members that train a sparse network together, under faults: it is what one would train alone",
       .keys_help = sparse_chaos_keys_help,
       .defects_help = sparse_chaos_defects_help,
       .prepare = prepare_sparse_chaos},
      {.name = "sparse-steps",
       .help = "what steps of a sparse run cost on given lines, beside the least that they can cost",
       .keys_help = sparse_steps_keys_help,
       .defects_help = sparse_steps_defects_help,
       .prepare = prepare_sparse_steps,
       .seeds = 1},
  }};
  return kPresets;
}

Result<const SimulationPreset*> find_simulation(std::string_view name, const std::string& where) {
  const auto presets = simulation_presets();
  const auto found = std::ranges::find(presets, name, &SimulationPreset::name);
  if (found != presets.end()) return &*found;
  std::vector<std::string_view> names;
  for (const SimulationPreset& preset : presets) names.push_back(preset.name);
  return Error{.kind = ErrorKind::kUsage,
               .where = where,
               .what = fmt::format("there is no simulation '{}'", name),
               .got = {},
               .expected = fmt::format("a preset such as '{}' (all: {}), or the path of a .toml file",
                                       nearest_name(name, names), fmt::join(names, ", ")),
               .fix = "'gossamer simulate --help' describes the presets"};
}

Result<settings::KeySetting> parse_setting(std::string_view text) {
  auto setting = settings::parse_setting(text, "members=5");
  if (setting.ok()) return setting;
  Error error = setting.error();
  error.what = "cannot read a key";
  error.fix = "'gossamer simulate --help' lists all keys";
  return error;
}

}  // namespace gossamer::commands
