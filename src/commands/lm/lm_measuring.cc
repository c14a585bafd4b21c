// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_measuring.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <utility>

#include "commands/lm/lm_figures.h"
#include "commands/lm/lm_text.h"
#include "commands/lm/loaded_lm.h"
#include "json/read_json.h"
#include "run/scratch_directory.h"

namespace gossamer::commands {
namespace {

struct TextToMeasure {
  std::unique_ptr<tokens::TokenFile> file;
  std::uint64_t skipped = 0;
};

Error no_scratch() {
  return {.kind = ErrorKind::kUsage,
          .where = "HOME",
          .what = "there is no place for the tokens of a text while it is measured",
          .got = "neither HOME nor XDG_STATE_HOME with an absolute path",
          .expected = "one of them, or a token file as --data",
          .fix = "set one of the two variables"};
}

// The tokens stay mapped when their file is gone.
Result<TextToMeasure> open_text(const run::NodeHost& host, const tokens::Tokenizer& tokenizer,
                                const MeasureModel& wanted) {
  const auto named = named_token_file(host.disk, wanted.data);
  if (!named.ok()) return named.error();
  if (*named) {
    auto file = open_tokens(host, **named, tokenizer);
    if (!file.ok()) return file.error();
    return TextToMeasure{.file = *std::move(file)};
  }
  if (wanted.scratch.empty()) return no_scratch();
  const auto scratch = run::ScratchDirectory::make(host.disk, wanted.scratch);
  if (!scratch.ok()) return scratch.error();
  const std::string path = scratch->path() + "/measured.tokens";
  const auto report = import_text(
      host, tokenizer,
      {.sources = {wanted.data}, .path = path, .skip_bad = wanted.skip_bad, .stop = wanted.model.stop});
  if (!report.ok()) return report.error();
  auto file = open_tokens(host, path, tokenizer);
  if (!file.ok()) return file.error();
  return TextToMeasure{.file = *std::move(file), .skipped = report->text.skipped};
}

}  // namespace

Result<Report> measure_lm(const run::NodeHost& host, const LmModules& modules, const MeasureModel& wanted) {
  const Instant begin = host.clock.now();
  const auto loaded = load_lm(host, modules, wanted.model.directory);
  if (!loaded.ok()) return loaded.error();
  const auto text = open_text(host, *loaded->tokenizer, wanted);
  if (!text.ok()) return text.error();
  const Instant ready = host.clock.now();
  const auto measured = measure_tokens(*loaded->model, *text->file, *loaded->tokenizer, wanted.model.stop);
  if (!measured.ok()) return measured.error();
  const double seconds = (host.clock.now() - ready).seconds();
  const double rate = seconds > 0 ? static_cast<double>(measured->tokens) / seconds : 0;
  using Json = nlohmann::ordered_json;
  const Json json = {{"metrics", read_json<Json>(lm_metrics_json(*measured))},
                     {"tokens", measured->tokens},
                     {"bytes", measured->bytes},
                     {"documents", text->file->documents()},
                     {"skipped", text->skipped},
                     {"tokens_per_second", rate},
                     {"load_seconds", (ready - begin).seconds()},
                     {"eval_seconds", seconds},
                     {"cpu_seconds", host.clock.process_cpu().seconds()},
                     {"peak_rss_bytes", host.compute.peak_rss_bytes()}};
  return Report{.json = json.dump(),
                .text = fmt::format("{}\n{:.0f} tokens a second\n", lm_metrics_text(*measured), rate)};
}

}  // namespace gossamer::commands
