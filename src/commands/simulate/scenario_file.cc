// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/scenario_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest_name.h"

namespace gossamer::node {
namespace {

using simulation::Fault;
using simulation::FaultName;

constexpr std::string_view kFix = "docs/protocols/scenario.md describes scenario files";

std::string describe(const toml::node& node) {
  if (const auto* text = node.as_string()) return fmt::format("the text \"{}\"", text->get());
  if (node.is_array()) return "an array";
  if (node.is_table()) return "a table";
  if (const auto* integer = node.as_integer()) return fmt::format("the integer {}", integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("the number {}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return "a date or time";
}

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

  Result<Scenario> read(const toml::table& table) {
    for (const auto& [key, node] : table) {
      if (auto done = entry(std::string(key.str()), key.source(), node); !done.ok()) return done.error();
    }
    if (scenario_.preset.empty()) {
      Error error = usage(fmt::format("{}:1:1", file_), "the scenario does not say what is simulated");
      error.expected = "a line such as preset = \"cluster-chaos\"";
      return error;
    }
    return std::move(scenario_);
  }

  [[nodiscard]] std::string place(const toml::source_region& source) const {
    return fmt::format("{}:{}:{}", file_, source.begin.line, source.begin.column);
  }

 private:
  static Error usage(std::string where, std::string what) {
    return {.kind = ErrorKind::kUsage,
            .where = std::move(where),
            .what = std::move(what),
            .fix = std::string(kFix)};
  }

  Error wrong(const std::string& name, const toml::node& node, std::string expected) const {
    Error error = usage(place(node.source()), fmt::format("cannot set {}", name));
    error.got = describe(node);
    error.expected = std::move(expected);
    return error;
  }

  Result<void> entry(const std::string& name, const toml::source_region& source, const toml::node& node) {
    if (name == "preset") {
      const auto* text = node.as_string();
      if (text == nullptr) return wrong(name, node, "the name of a preset in quotes");
      auto preset = find_simulation(text->get(), place(node.source()));
      if (!preset.ok()) return preset.error();
      scenario_.preset = text->get();
      return {};
    }
    if (name == "fault") return faults(node);
    if (const auto* inner = node.as_table()) {
      if (name != "expect") {
        Error error = usage(place(source), fmt::format("there is no section [{}]", name));
        error.expected = "[expect] or [[fault]]";
        return error;
      }
      for (const auto& [key, value] : *inner) {
        if (auto done = setting("expect." + std::string(key.str()), value); !done.ok()) return done;
      }
      return {};
    }
    return setting(name, node);
  }

  Result<void> setting(const std::string& name, const toml::node& node) {
    std::string value;
    if (const auto* text = node.as_string()) {
      value = text->get();
    } else if (const auto* integer = node.as_integer()) {
      value = fmt::format("{}", integer->get());
    } else if (const auto* number = node.as_floating_point()) {
      value = fmt::format("{}", number->get());
    } else if (const auto* array = node.as_array(); array != nullptr && !array->empty()) {
      std::vector<std::string> words;
      for (const toml::node& one : *array) {
        if (!one.is_string()) return wrong(name, one, "texts in quotes");
        words.push_back(one.as_string()->get());
      }
      value = fmt::format("{}", fmt::join(words, ","));
    } else {
      return wrong(name, node, "a number, a text in quotes, or an array of texts");
    }
    scenario_.settings.push_back({name, std::move(value), place(node.source())});
    return {};
  }

  Result<void> faults(const toml::node& node) {
    const auto* array = node.as_array();
    if (array == nullptr) return wrong("fault", node, "[[fault]] tables, with double brackets");
    for (const toml::node& one : *array) {
      const auto* table = one.as_table();
      if (table == nullptr) return wrong("fault", one, "[[fault]] tables, with double brackets");
      auto fault = read_fault(*table);
      if (!fault.ok()) return fault.error();
      scenario_.faults.push_back(*fault);
    }
    return {};
  }

  Result<Fault> read_fault(const toml::table& table) {
    Fault fault;
    bool has_kind = false;
    bool has_time = false;
    for (const auto& [key, node] : table) {
      const std::string_view name = key.str();
      if (name == "kind") {
        auto kind = read_kind(node);
        if (!kind.ok()) return kind.error();
        fault.kind = *kind;
        has_kind = true;
        continue;
      }
      const auto range = std::ranges::find(kFaultNumbers, name, &Range::name);
      if (range == kFaultNumbers.end()) return unknown_fault_key(name, key.source());
      const auto number = read_number(*range, node);
      if (!number.ok()) return number.error();
      if (name == "at_s") fault.at = Instant{} + from_seconds(*number);
      if (name == "lasts_s") fault.lasts = from_seconds(*number);
      if (name == "member") fault.member = static_cast<std::uint64_t>(*number);
      if (name == "other") fault.other = static_cast<std::uint64_t>(*number);
      has_time = has_time || name == "at_s";
    }
    if (has_kind && has_time) return fault;
    Error error = usage(place(table.source()), fmt::format("a fault has no {}", has_kind ? "at_s" : "kind"));
    error.expected = "kind = \"NAME\" and at_s = SECONDS";
    return error;
  }

  Result<simulation::FaultKind> read_kind(const toml::node& node) const {
    std::vector<std::string_view> names;
    for (const FaultName& one : simulation::kFaults) names.push_back(one.name);
    const auto* text = node.as_string();
    const auto kind = text == nullptr ? std::nullopt : simulation::fault_of(text->get());
    if (kind) return *kind;
    const std::string_view word = text == nullptr ? std::string_view() : std::string_view(text->get());
    return wrong(
        "kind", node,
        fmt::format("a fault such as \"{}\" (all: {})", nearest_name(word, names), fmt::join(names, ", ")));
  }

  Result<double> read_number(const Range& range, const toml::node& node) const {
    const std::optional<double> number = node.value<double>();
    const bool fits = number && node.is_number() && *number >= range.min && *number <= range.max &&
                      (!range.whole || node.is_integer());
    if (fits) return *number;
    return wrong(std::string(range.name), node,
                 fmt::format("{} {}..{}", range.whole ? "an integer" : "a number", range.min, range.max));
  }

  Error unknown_fault_key(std::string_view name, const toml::source_region& source) const {
    std::vector<std::string_view> names{"kind"};
    for (const Range& range : kFaultNumbers) names.push_back(range.name);
    Error error = usage(place(source), fmt::format("a fault has no key '{}'", name));
    error.expected =
        fmt::format("a key such as '{}' (all: {})", nearest_name(name, names), fmt::join(names, ", "));
    return error;
  }

  std::string_view file_;
  Scenario scenario_;
};

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, std::string_view file) {
  const toml::parse_result parsed = toml::parse(text, file);
  Reader reader(file);
  if (!parsed) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = reader.place(parsed.error().source()),
                 .what = "cannot read this as TOML",
                 .got = std::string(parsed.error().description()),
                 .expected = "lines such as members = 4, [[fault]] and kind = \"kill\"",
                 .fix = "mend the line"};
  }
  return reader.read(parsed.table());
}

}  // namespace gossamer::node
