// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/scenario_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "settings/toml.h"

namespace gossamer::commands {
namespace {

using settings::TomlEntry;
using settings::TomlTable;
using settings::TomlValue;
using simulation::Fault;
using simulation::FaultName;
using TomlArray = std::vector<TomlValue>;

constexpr std::string_view kFix = "docs/protocols/scenario.md describes scenario files";

struct Range {
  std::string_view name;
  double min;
  double max;
  bool whole;
};
constexpr std::array<Range, 4> kFaultNumbers{{{"at_s", 0, 3600, false},
                                              {"lasts_s", 0, 3600, false},
                                              {"member", 0, 1000, true},
                                              {"other", 0, 1000, true}}};

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Result<Scenario> read(const TomlTable& table) {
    for (const TomlEntry& one : table) {
      if (auto done = entry(one); !done.ok()) return done.error();
    }
    if (scenario_.preset.empty()) {
      Error error = usage(fmt::format("{}:1:1", file_), "the scenario does not say what is simulated");
      error.expected = "a line such as preset = \"cluster-chaos\"";
      return error;
    }
    return std::move(scenario_);
  }

 private:
  static Error usage(std::string where, std::string what) {
    return {.kind = ErrorKind::kUsage,
            .where = std::move(where),
            .what = std::move(what),
            .fix = std::string(kFix)};
  }

  static Error wrong(const std::string& name, const TomlValue& value, std::string expected) {
    Error error = usage(value.where, fmt::format("cannot set {}", name));
    error.got = describe(value);
    error.expected = std::move(expected);
    return error;
  }

  Result<void> entry(const TomlEntry& entry) {
    const auto& [name, where, value] = entry;
    if (name == "preset") {
      const auto* text = value.as<std::string>();
      if (text == nullptr) return wrong(name, value, "the name of a preset in quotes");
      auto preset = find_simulation(*text, value.where);
      if (!preset.ok()) return preset.error();
      scenario_.preset = *text;
      return {};
    }
    if (name == "fault") return faults(value);
    const auto* inner = value.as<TomlTable>();
    if (inner == nullptr) return setting(name, value);
    if (name != "expect") {
      Error error = usage(where, fmt::format("there is no section [{}]", name));
      error.expected = "[expect] or [[fault]]";
      return error;
    }
    for (const TomlEntry& one : *inner) {
      if (auto done = setting("expect." + one.name, one.value); !done.ok()) return done;
    }
    return {};
  }

  Result<void> setting(const std::string& name, const TomlValue& value) {
    std::string out;
    if (const auto* text = value.as<std::string>()) {
      out = *text;
    } else if (const auto* integer = value.as<std::int64_t>()) {
      out = fmt::format("{}", *integer);
    } else if (const auto* number = value.as<double>()) {
      out = fmt::format("{}", *number);
    } else if (const auto* array = value.as<TomlArray>(); array != nullptr && !array->empty()) {
      std::vector<std::string> words;
      for (const TomlValue& one : *array) {
        const auto* word = one.as<std::string>();
        if (word == nullptr) return wrong(name, one, "texts in quotes");
        words.push_back(*word);
      }
      out = fmt::format("{}", fmt::join(words, ","));
    } else {
      return wrong(name, value, "a number, a text in quotes, or an array of texts");
    }
    scenario_.settings.push_back({name, std::move(out), value.where});
    return {};
  }

  Result<void> faults(const TomlValue& value) {
    const auto* array = value.as<TomlArray>();
    if (array == nullptr) return wrong("fault", value, "[[fault]] tables, with double brackets");
    for (const TomlValue& one : *array) {
      const auto* table = one.as<TomlTable>();
      if (table == nullptr) return wrong("fault", one, "[[fault]] tables, with double brackets");
      auto fault = read_fault(*table, one.where);
      if (!fault.ok()) return fault.error();
      scenario_.faults.push_back(*fault);
    }
    return {};
  }

  static Result<Fault> read_fault(const TomlTable& table, const std::string& where) {
    Fault fault;
    bool has_kind = false;
    bool has_time = false;
    for (const TomlEntry& entry : table) {
      const std::string_view name = entry.name;
      if (name == "kind") {
        auto kind = read_kind(entry.value);
        if (!kind.ok()) return kind.error();
        fault.kind = *kind;
        has_kind = true;
        continue;
      }
      const auto* const range = std::ranges::find(kFaultNumbers, name, &Range::name);
      if (range == kFaultNumbers.end()) return unknown_fault_key(entry);
      const auto number = read_number(*range, entry.value);
      if (!number.ok()) return number.error();
      if (name == "at_s") fault.at = Instant{} + from_seconds(*number);
      if (name == "lasts_s") fault.lasts = from_seconds(*number);
      if (name == "member") fault.member = static_cast<std::uint64_t>(*number);
      if (name == "other") fault.other = static_cast<std::uint64_t>(*number);
      has_time = has_time || name == "at_s";
    }
    if (has_kind && has_time) return fault;
    Error error = usage(where, fmt::format("a fault has no {}", has_kind ? "at_s" : "kind"));
    error.expected = "kind = \"NAME\" and at_s = SECONDS";
    return error;
  }

  static Result<simulation::FaultKind> read_kind(const TomlValue& value) {
    std::vector<std::string_view> names;
    for (const FaultName& one : simulation::kFaults) names.push_back(one.name);
    const auto* text = value.as<std::string>();
    const std::string_view word = text == nullptr ? std::string_view() : *text;
    if (const auto kind = simulation::fault_of(word)) return *kind;
    return wrong(
        "kind", value,
        fmt::format("a fault such as \"{}\" (all: {})", nearest_name(word, names), fmt::join(names, ", ")));
  }

  static Result<double> read_number(const Range& range, const TomlValue& value) {
    const auto* integer = value.as<std::int64_t>();
    std::optional<double> number;
    if (integer != nullptr) number = static_cast<double>(*integer);
    if (const auto* fraction = value.as<double>(); fraction != nullptr && !range.whole) number = *fraction;
    if (number.has_value() && *number >= range.min && *number <= range.max) return *number;
    return wrong(std::string(range.name), value,
                 fmt::format("{} {}..{}", range.whole ? "an integer" : "a number", range.min, range.max));
  }

  static Error unknown_fault_key(const TomlEntry& entry) {
    std::vector<std::string_view> names{"kind"};
    for (const Range& range : kFaultNumbers) names.push_back(range.name);
    Error error = usage(entry.where, fmt::format("a fault has no key '{}'", entry.name));
    error.expected =
        fmt::format("a key such as '{}' (all: {})", nearest_name(entry.name, names), fmt::join(names, ", "));
    return error;
  }

  std::string_view file_;
  Scenario scenario_;
};

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, std::string_view file) {
  const auto table = settings::parse_toml(text, file);
  if (table.ok()) return Reader(file).read(*table);
  Error error = table.error();
  error.expected = "lines such as members = 4, [[fault]] and kind = \"kill\"";
  return error;
}

}  // namespace gossamer::commands
