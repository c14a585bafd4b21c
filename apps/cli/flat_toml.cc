// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/flat_toml.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace gossamer::cli {
namespace {

Error wrong(std::string_view file, const toml::source_region& source, std::string got) {
  return {.kind = ErrorKind::kUsage,
          .where = fmt::format("{}:{}:{}", file, source.begin.line, source.begin.column),
          .what = "cannot read the run's keys",
          .got = std::move(got),
          .expected = "key = value, with a text or a whole number",
          .fix = "restore the file, or start a new run in another directory"};
}

}  // namespace

Result<std::vector<std::string>> parse_flat_toml(std::string_view text, std::string_view file) {
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) return wrong(file, parsed.error().source(), std::string(parsed.error().description()));
  std::vector<std::string> settings;
  for (const auto& [key, node] : parsed.table()) {
    if (const auto* word = node.as_string()) {
      settings.push_back(fmt::format("{}={}", key.str(), word->get()));
    } else if (const auto* number = node.as_integer()) {
      settings.push_back(fmt::format("{}={}", key.str(), number->get()));
    } else {
      return wrong(file, node.source(), fmt::format("another kind of value for {}", key.str()));
    }
  }
  return settings;
}

}  // namespace gossamer::cli
