// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/simulation_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "base/nearest_name.h"
#include "settings/bench_options.h"

namespace gossamer::node {

using simulation::FaultKind;
using simulation::StoreKind;

std::string help_of(const SimulationWord& word) {
  return fmt::format("  {:<26} {}\n", fmt::format("{}={}", word.name, word.standard), word.help);
}

Error wrong_value(const SimulationSetting& setting, std::string expected) {
  Error error = bad_bench_setting("simulate", {setting.name, setting.value}, std::move(expected));
  error.where = setting.where;
  return error;
}

Error contradiction(const SimulationSetting& setting, std::string what, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = setting.where,
          .what = std::move(what),
          .got = fmt::format("{}={}", setting.name, setting.value),
          .expected = std::move(expected),
          .fix = "change one of the two"};
}

Result<std::vector<FaultKind>> read_kinds(const SimulationSetting& setting,
                                          const std::vector<FaultKind>& known) {
  std::vector<FaultKind> kinds;
  if (setting.value == "all") return kinds;
  std::vector<std::string_view> names;
  for (const FaultKind kind : known) {
    if (std::ranges::find(names, simulation::name(kind)) == names.end())
      names.push_back(simulation::name(kind));
  }
  for (const auto part : std::views::split(setting.value, ',')) {
    const std::string_view word(part.begin(), part.end());
    const auto kind = simulation::fault_of(word);
    if (!kind || std::ranges::find(known, *kind) == known.end()) {
      return wrong_value(setting, fmt::format("kinds such as '{}' (all: {}), separated by commas",
                                              nearest_name(word, names), fmt::join(names, ", ")));
    }
    kinds.push_back(*kind);
  }
  if (kinds.empty()) return wrong_value(setting, fmt::format("'all', or {}", fmt::join(names, ", ")));
  return kinds;
}

Result<std::optional<StoreKind>> read_store(const SimulationSetting& setting) {
  if (setting.value == "file") return std::optional(StoreKind::kFile);
  if (setting.value == "cluster") return std::optional(StoreKind::kCluster);
  if (setting.value == "drawn") return std::optional<StoreKind>();
  return wrong_value(setting, "file, cluster or drawn");
}

Error no_protection(const SimulationSetting& setting, const std::vector<std::string_view>& names) {
  return wrong_value(setting, fmt::format("a protection such as '{}' (all: {})",
                                          nearest_name(setting.value, names), fmt::join(names, ", ")));
}

Result<void> check_drawn(const Scenario& scenario, const SimulationSetting& setting) {
  const bool of_drawn = setting.name == "faults" || setting.name == "kinds" || setting.name == "trouble_s";
  if (!of_drawn || scenario.faults.empty()) return {};
  return contradiction(setting, "this scenario has faults of its own, so none are drawn",
                       "[[fault]] or the keys faults, kinds, trouble_s");
}

}  // namespace gossamer::node
