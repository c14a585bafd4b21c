// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_import.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

#include "base/printable.h"
#include "commands/lm/lm_text.h"
#include "commands/lm/text_tokenizer.h"
#include "learn/text/words.h"
#include "run/output_directory.h"

namespace gossamer::commands {
namespace {

using ImportJson = nlohmann::ordered_json;

std::string import_json(const tokens::TokenReport& report, const std::string& path) {
  const tokens::TextReport& text = report.text;
  ImportJson json = {{"documents", text.documents},
                     {"tokens", report.tokens},
                     {"bytes", text.bytes},
                     {"files", text.files},
                     {"empty", text.empty},
                     {"hidden", text.hidden},
                     {"skipped", text.skipped},
                     {"skipped_examples", ImportJson::array()},
                     {"path", path}};
  for (const Error& example : text.examples) json["skipped_examples"].push_back(example.message());
  return json.dump(-1, ' ', false, ImportJson::error_handler_t::replace);
}

// The first characters of the text.
std::string beginning_of(const tokens::TokenFile& file, const tokens::Tokenizer& tokenizer) {
  constexpr std::uint64_t kShown = 160;
  std::vector<tokens::TokenId> first(std::min(kShown, file.size()));
  file.copy(0, first);
  const std::string text = tokenizer.decode(first);
  return text.substr(0, text::valid_utf8_prefix(text));
}

}  // namespace

Result<Report> import_lm(const run::NodeHost& host, const OpenPieces& open_pieces,
                         const ImportFiles& wanted) {
  auto out = run::OutputDirectory::open(host.disk, wanted.directory);
  if (!out.ok()) return out.error();
  const std::string path = wanted.directory + "/train.tokens";
  const std::string kept = fmt::format("{}/{}", wanted.directory, tokens::kTokenizerFile);
  const auto tokenizer = tokenizer_of_text(host, open_pieces,
                                           {.word = wanted.tokenizer,
                                            .vocabulary = wanted.vocabulary,
                                            .sources = wanted.sources,
                                            .texts_alone = true,
                                            .skip_bad = wanted.skip_bad,
                                            .kept = kept,
                                            .word_key = "--tokenizer",
                                            .vocabulary_key = "--vocabulary"});
  if (!tokenizer.ok()) return tokenizer.error();
  if (auto done = keep_tokenizer(host.disk, kept, **tokenizer); !done.ok()) return done.error();
  const auto report =
      import_text(host, **tokenizer, {.sources = wanted.sources, .path = path, .skip_bad = wanted.skip_bad});
  if (!report.ok()) return report.error();
  if (auto done = out->keep(); !done.ok()) return done.error();
  return Report{.json = import_json(*report, path),
                .text = fmt::format("{}\n({} read) in {}\n", text_line(*report),
                                    run::counted(report->text.files, "file"), path)};
}

Result<std::optional<Report>> inspect_lm(const run::NodeHost& host, const OpenPieces& open_pieces,
                                         const std::string& directory) {
  using Look = std::optional<Report>;
  for (const char* name : {"/train.tokens", "/data/train.tokens"}) {
    const std::string path = directory + name;
    const auto there = host.disk.exists(path);
    if (!there.ok()) return there.error();
    if (!*there) continue;
    const auto tokenizer = tokenizer_beside(host, open_pieces, path);
    if (!tokenizer.ok()) return tokenizer.error();
    const auto file = open_tokens(host, path, **tokenizer);
    if (!file.ok()) return file.error();
    const std::string begins = beginning_of(**file, **tokenizer);
    const ImportJson json = {{"documents", (*file)->documents()}, {"tokens", (*file)->size()},
                             {"bytes", (*file)->text_bytes()},    {"vocabulary", (*file)->vocabulary()},
                             {"tokenizer", (*tokenizer)->name()}, {"begins", begins}};
    return Look(Report{.json = json.dump(-1, ' ', false, ImportJson::error_handler_t::replace),
                       .text = fmt::format(
                           "documents  {}\ntokens     {} of a vocabulary of {}\nbytes      {}\n"
                           "begins     {}\n",
                           run::human_count((*file)->documents()), run::human_count((*file)->size()),
                           (*file)->vocabulary(), run::human_count((*file)->text_bytes()), visible(begins))});
  }
  return Look();
}

}  // namespace gossamer::commands
