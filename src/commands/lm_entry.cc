// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "commands/engine/run_request.h"
#include "commands/engine/training.h"
#include "commands/engines.h"
#include "commands/lm/lm_import.h"
#include "commands/lm/lm_measuring.h"
#include "commands/lm/lm_session.h"
#include "commands/lm/lm_training.h"
#include "commands/lm/sentencepiece_library.h"
#include "commands/lm/torch_library.h"
#include "commands/lm_fleet/lm_led_training.h"
#include "commands/lm_fleet/lm_member.h"
#include "engines/pipeline/config/lm_config.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kLmName = "lm";

constexpr std::string_view kLmPreset = R"(# A language model of a text. model.preset says which.
engine = "lm"

[model]
preset = "tiny"
)";

constexpr std::array<std::string_view, 3> kLmImportFlags = {"--skip-bad", "--tokenizer", "--vocabulary"};

const LmModules kModules = {.stages = open_torch_stages, .pieces = open_pieces};

}  // namespace

EngineEntry lm_entry() {
  return {
      .name = kLmName,
      .help = "trains language models",
      .presets = {{.name = kLmName, .help = "a language model of a text", .toml = kLmPreset}},
      .keys = &pipeline::lm_keys(),
      .check =
          [](const settings::Values& values) {
            return pipeline::validate(pipeline::lm_keys().config(values));
          },
      .prepare = [](const TrainingPlace& place,
                    const std::optional<LeadOptions>& lead) -> std::unique_ptr<Training> {
        if (lead) return lm_led_training(place, *lead, kModules);
        return lm_training(place, kModules);
      },
      .member = [](const MemberPlace& place) { return lm_member(place, kModules); },
      .evaluate = [](const run::NodeHost& host,
                     const MeasureModel& wanted) { return measure_lm(host, kModules, wanted); },
      .predict = [](const run::NodeHost& host,
                    const OpenModel& wanted) { return open_lm_session(host, kModules, wanted); },
      .model_flags = {"--tokens", "--temperature", "--top-k", "--seed"},
      .import_kinds = {{.name = kLmKind, .help = "UTF-8 text for language models", .flags = kLmImportFlags}},
      .import = [](const run::NodeHost& host,
                   const ImportFiles& wanted) { return import_lm(host, kModules.pieces, wanted); },
      .inspect = [](const run::NodeHost& host,
                    const std::string& directory) { return inspect_lm(host, kModules.pieces, directory); },
      .parts =
          [](host::Disk& disk) {
            return std::vector<EnginePart>{look_at_torch(disk), look_at_sentencepiece(disk)};
          }};
}

}  // namespace gossamer::commands
