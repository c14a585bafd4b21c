// SPDX-License-Identifier: Apache-2.0
#include "commands/records/record_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "commands/records/data_import.h"
#include "commands/records/evaluation_set.h"
#include "commands/records/import_space.h"
#include "commands/records/queries.h"
#include "commands/records/record_import.h"
#include "commands/records/session_data.h"
#include "commands/records/word_data.h"
#include "learn/data/read/import.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/record_assembler.h"
#include "learn/data/read/session_reader.h"
#include "learn/data/read/word_reader.h"
#include "learn/data/read/xmlc_reader.h"
#include "learn/text/text_import.h"

namespace gossamer::commands {
namespace {

using data::RecordFormat;

// Fewer than one of so many words are unknown in any contexts, as rare words are.
constexpr std::uint64_t kFewUnknown = 10;

// Reads with `kReader` and keeps nothing.
template <auto kReader>
Result<data::ReadReport> read_only(data::ByteSource& source, const data::ReadOptions& options) {
  return kReader(source, options, [](const auto&) { return Result<void>(); });
}

Result<text::FeaturizerState> count_words(const ImportJob& job) {
  const sparse_engine::TextConfig& config = job.request.text;
  return text::count_vocabulary(job.host.disk, job.options,
                                {.stems = config.stems,
                                 .subword_min = config.subword_min,
                                 .subword_max = config.subword_max,
                                 .min_document_frequency = config.min_df,
                                 .max_features = config.max_features,
                                 .stem_weight = static_cast<float>(config.stem_weight),
                                 .subword_weight = static_cast<float>(config.subword_weight)});
}

Result<data::ReadReport> import_text(const ImportJob& job) {
  const auto weight = static_cast<float>(job.request.text.context_weight);
  text::ContextWords words;
  auto report =
      text::import_text(job.host.disk, job.options,
                        {.featurizer = *job.featurizer, .context_weight = weight, .context_words = &words});
  if (report.ok() && words.unknown * kFewUnknown > words.words) {
    job.progress.finish();
    job.host.warn(
        fmt::format("{} of {} in the \"context\" of records teach nothing: words are learnt that stand in "
                    "the \"text\" of "
                    "{} or more",
                    run::human_count(words.unknown), run::counted(words.words, "word"),
                    run::counted(job.request.text.min_df, "record")));
  }
  return report;
}

Result<data::ReadReport> import_jsonl(const ImportJob& job) {
  data::RecordAssembler assembler;
  return data::import_jsonl(job.host.disk, job.options, assembler);
}

Result<data::ReadReport> import_sessions(const ImportJob& job) {
  return data::import_sessions(job.host.disk, job.options, line_shape(job.request.sessions));
}

constexpr RecordRow kXmc{
    .format = RecordFormat::kXmc,
    .name = "XMLC text",
    .features = FeatureKind::kNumbers,
    .read = read_only<data::read_xmlc>,
    .import = [](const ImportJob& job) { return data::import_xmlc(job.host.disk, job.options); },
    .estimate = estimate_xmlc,
    .look = look_at_cache,
    .test = test_xmlc,
    .query = &QueryParser::add_pairs};

constexpr RecordRow kSessions{.format = RecordFormat::kSessions,
                              .name = "sessions",
                              .features = FeatureKind::kSessions,
                              .imported = "records.sessions",
                              .told = "{0} of {2}",
                              .record = "session",
                              .label = "item",
                              .lines = "sessions, one a line: ITEM ITEM ...",
                              .read = read_only<data::read_sessions>,
                              .import = import_sessions,
                              .copy = copy_sessions,
                              .estimate = estimate_copy,
                              .look = look_at_sessions,
                              .test = test_sessions,
                              .query = &QueryParser::add_items};

constexpr RecordRow kText{.format = RecordFormat::kText,
                          .name = "plain text",
                          .features = FeatureKind::kWords,
                          .imported = "records.text",
                          .cached = "train.words",
                          .told = "{0}, {3} different",
                          .record = "word",
                          .lines = "plain text, or a directory of 'data import text'",
                          .read = read_only<data::read_words>,
                          .import = import_words,
                          .copy = copy_words,
                          .estimate = estimate_copy,
                          .look = look_at_words,
                          .test = test_words,
                          .query = &QueryParser::add_items};

constexpr RecordRow kJsonlText{.format = RecordFormat::kJsonlText,
                               .name = "JSON lines of text",
                               .features = FeatureKind::kText,
                               .imported = "records.jsonl",
                               .told = "{0}",
                               .jsonl = true,
                               .read = read_only<data::read_jsonl>,
                               .count = count_words,
                               .import = import_text,
                               .copy = copy_text,
                               .estimate = estimate_text,
                               .look = look_at_text,
                               .test = test_jsonl,
                               .query = &QueryParser::add_text_line};

constexpr RecordRow kJsonlNumbers{.format = RecordFormat::kJsonlNumbers,
                                  .name = "JSON lines of numbered features",
                                  .features = FeatureKind::kNumbers,
                                  .jsonl = true,
                                  .read = read_only<data::read_jsonl>,
                                  .import = import_jsonl,
                                  .estimate = estimate_jsonl,
                                  .look = look_at_cache,
                                  .test = test_jsonl,
                                  .query = &QueryParser::add_pairs};

constexpr RecordRow named_row() {
  RecordRow row = kJsonlNumbers;
  row.format = RecordFormat::kJsonlNames;
  row.name = "JSON lines of named features";
  row.features = FeatureKind::kNames;
  return row;
}

// Nothing reads imported records as lines but an import, which says that they are none.
constexpr RecordRow kCache{.format = RecordFormat::kCache,
                           .name = "imported records",
                           .features = std::nullopt,
                           .read = nullptr,
                           .import = import_jsonl,
                           .estimate = estimate_jsonl,
                           .look = look_at_cache,
                           .test = nullptr,
                           .query = &QueryParser::add_pairs};

// In the order of the enum.
constexpr std::array kRows = {kXmc, kJsonlText, kSessions, kText, kJsonlNumbers, named_row(), kCache};

}  // namespace

const RecordRow& row_of(data::RecordFormat format) {
  const RecordRow& row = kRows.at(static_cast<std::size_t>(format));
  CHECK(row.format == format, static_cast<int>(format));
  return row;
}

const RecordRow& row_of(FeatureKind features) {
  const auto found =
      std::ranges::find_if(kRows, [features](const RecordRow& row) { return row.features == features; });
  CHECK(found != kRows.end(), static_cast<int>(features));
  return *found;
}

}  // namespace gossamer::commands
