// SPDX-License-Identifier: Apache-2.0
#include "run/engine_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::run {

std::optional<EngineWord> take_engine(settings::TomlTable& config) {
  const auto found = std::ranges::find(config, kEngineKey, &settings::TomlEntry::name);
  if (found == config.end()) return std::nullopt;
  const auto* const text = found->value.as<std::string>();
  EngineWord word{.name = text != nullptr ? *text : settings::describe(found->value),
                  .where = found->value.where};
  config.erase(found);
  return word;
}

std::string engine_line(const RunEngine& engine) {
  if (engine.name == engine.unnamed) return {};
  return fmt::format("{:<40} # whose keys these are\n", fmt::format("{} = \"{}\"", kEngineKey, engine.name));
}

Error other_engine(std::string where, std::string_view of_run, std::string_view wanted) {
  return {.kind = ErrorKind::kUsage,
          .where = std::move(where),
          .what = fmt::format("the run in this directory is of engine '{}'", of_run),
          .got = fmt::format("a config of engine '{}'", wanted),
          .expected = fmt::format("a config of engine '{}'", of_run),
          .fix = "resume the run with its own config, or start a new run in another directory"};
}

}  // namespace gossamer::run
