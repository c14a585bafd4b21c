// SPDX-License-Identifier: Apache-2.0
#include "settings/bench_options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/human_bytes.h"
#include "base/nearest_name.h"

namespace gossamer::node {
namespace {

bool whole_multiple(std::uint64_t value, const BenchOption& option) {
  return value % option.multiple_of == 0;
}
bool whole_multiple(double /*value*/, const BenchOption& /*option*/) { return true; }

// Whether `text` is a value of the option, which it then has.
bool set_value(const BenchOption& option, std::string_view text) {
  return std::visit(
      [&](auto* place) {
        auto value = *place;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc() || stop != end) return false;
        const auto number = static_cast<double>(value);
        if (!(number >= option.min && number <= option.max) || !whole_multiple(value, option)) return false;
        *place = value;
        return true;
      },
      option.value);
}

std::string expected_value(const BenchOption& option) {
  const bool whole = std::holds_alternative<std::uint64_t*>(option.value);
  std::string text = fmt::format("{} {}..{}", whole ? "an integer" : "a number", option.min, option.max);
  if (option.multiple_of > 1) text += fmt::format(", a multiple of {}", option.multiple_of);
  return text;
}

Error usage(std::string_view command, std::string what, std::string_view got) {
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = std::move(what),
          .got = fmt::format("'{}'", got),
          .expected = {},
          .fix = fmt::format("'gossamer {} --help' lists all options", command)};
}

}  // namespace

BenchSetting split_bench_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  return {text.substr(0, equals), equals == std::string_view::npos ? "" : text.substr(equals + 1)};
}

Error bad_bench_setting(std::string_view command, BenchSetting setting, std::string expected) {
  Error error = usage(command, fmt::format("cannot set {}", setting.name), setting.value);
  error.expected = std::move(expected);
  return error;
}

Result<void> set_bench_option(const BenchOptions& table, std::string_view text) {
  const BenchSetting setting = split_bench_setting(text);
  const auto option = std::ranges::find(table.options, setting.name, &BenchOption::name);
  if (option == table.options.end()) {
    std::vector<std::string_view> names = table.others;
    for (const BenchOption& known : table.options) names.push_back(known.name);
    Error error = usage(table.command, fmt::format("there is no option '{}'", setting.name), text);
    error.expected = fmt::format("an option such as '{}'", nearest_name(setting.name, names));
    return error;
  }
  if (set_value(*option, setting.value)) return {};
  return bad_bench_setting(table.command, setting, expected_value(*option));
}

std::string bench_options_help(const BenchOptions& table) {
  std::string text;
  for (const BenchOption& option : table.options) {
    const std::string setting = std::visit(
        [&](const auto* place) { return fmt::format("{}={}", option.name, *place); }, option.value);
    text += fmt::format("  {:<26} {}, {}..{}\n", setting, option.help, option.min, option.max);
  }
  return text;
}

Result<void> check_bench_memory(const NodeHost& host, std::uint64_t needed, std::string fix) {
  const std::uint64_t limit = host.compute.memory_limit_bytes();
  if (needed <= limit) return {};
  return Error{.kind = ErrorKind::kFailed,
               .where = {},
               .what = "the benchmark does not fit into memory",
               .got = fmt::format("{} needed", human_bytes(needed)),
               .expected = fmt::format("at most {}", human_bytes(limit)),
               .fix = std::move(fix)};
}

nlohmann::ordered_json bench_options_json(const BenchOptions& table) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const BenchOption& option : table.options) {
    std::visit([&](const auto* place) { json[std::string(option.name)] = *place; }, option.value);
  }
  return json;
}

}  // namespace gossamer::node
