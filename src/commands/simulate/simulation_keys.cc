// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/simulation_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "base/nearest_name.h"

namespace gossamer::commands {

using settings::KeySetting;
using simulation::FaultKind;

Error contradiction(const KeySetting& setting, std::string what, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = setting.where,
          .what = std::move(what),
          .got = fmt::format("{}={}", setting.name, setting.text),
          .expected = std::move(expected),
          .fix = "change one of the two"};
}

Result<void> check_drawn(const Scenario& scenario, const KeySetting& setting) {
  const bool of_drawn = setting.name == "faults" || setting.name == "kinds" || setting.name == "trouble_s";
  if (!of_drawn || scenario.faults.empty()) return {};
  return contradiction(setting, "this scenario has faults of its own, so none are drawn",
                       "[[fault]] or the keys faults, kinds, trouble_s");
}

std::optional<std::string> read_kinds(std::string_view text, const std::vector<FaultKind>& known,
                                      std::vector<FaultKind>& kinds) {
  if (text == "all") {
    kinds.clear();
    return std::nullopt;
  }
  std::vector<FaultKind> named;
  std::vector<std::string_view> names;
  for (const FaultKind kind : known) {
    if (std::ranges::find(names, simulation::name(kind)) == names.end())
      names.push_back(simulation::name(kind));
  }
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view word(part.begin(), part.end());
    const auto kind = simulation::fault_of(word);
    if (!kind || std::ranges::find(known, *kind) == known.end()) {
      return fmt::format("kinds such as '{}' (all: {}), separated by commas", nearest_name(word, names),
                         fmt::join(names, ", "));
    }
    named.push_back(*kind);
  }
  if (named.empty()) return fmt::format("'all', or {}", fmt::join(names, ", "));
  kinds = std::move(named);
  return std::nullopt;
}

std::string kinds_text(const std::vector<FaultKind>& kinds) {
  std::string text;
  for (const FaultKind kind : kinds)
    text += fmt::format("{}{}", text.empty() ? "" : ",", simulation::name(kind));
  return text.empty() ? "all" : text;
}

std::string expected_protection(std::string_view text, const std::vector<std::string_view>& names) {
  return fmt::format("a protection such as '{}' (all: {})", nearest_name(text, names),
                     fmt::join(names, ", "));
}

}  // namespace gossamer::commands
