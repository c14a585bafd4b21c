// SPDX-License-Identifier: Apache-2.0
#include "commands/records/evaluation_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/printable.h"
#include "commands/records/record_formats.h"
#include "commands/records/record_import.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/name_table.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/record_assembler.h"
#include "learn/data/read/session_reader.h"
#include "learn/data/read/word_reader.h"
#include "learn/data/read/xmlc_reader.h"
#include "learn/data/text_windows.h"
#include "learn/data/token_text.h"
#include "run/progress.h"

namespace gossamer::commands {
namespace {

data::NameTable label_table(const sparse_engine::Model& model) {
  data::NameTable table;
  for (std::size_t i = 0; i < model.label_names.size(); ++i) table.id(model.label_names[i]);
  return table;
}

// Says which features the model does not know. Requires that there are some.
std::string describe_unknown(const UnknownFeatures& features, FeatureKind kind) {
  return fmt::format("{} of {} {} of the test records are not in the model and left out, such as '{}'",
                     run::human_count(features.unknown), run::human_count(features.of),
                     kind == FeatureKind::kNumbers ? "features" : "feature names", features.first);
}

std::string describe_unseen(const UnseenLabels& labels) {
  return fmt::format("{} of {} labels of the test records were never seen in training, such as '{}'",
                     run::human_count(labels.unseen), run::human_count(labels.labels), visible(labels.first));
}

std::string describe_unknown_records(std::uint64_t records) {
  const bool one = records == 1;
  return fmt::format("{} {} no word or feature that the model knows; {}",
                     run::counted(records, "test record"), one ? "has" : "have",
                     one ? "it counts like a blank query" : "they count like blank queries");
}

enum class Naming { kNames, kNumbers };

Naming naming(const sparse_engine::Model& model) {
  return model.label_names.size() > 0 ? Naming::kNames : Naming::kNumbers;
}

Naming naming(bool by_name) { return by_name ? Naming::kNames : Naming::kNumbers; }

// How the first label of a file is written; nothing where there is none, or where the format leaves no
// choice.
Result<std::optional<Naming>> first_naming(const run::NodeHost& host, const Source& test) {
  using Found = std::optional<Naming>;
  if (row_of(test.format).test == nullptr) {
    const auto dataset = data::CachedDataset::open(host.disk, test.path, host.compute);
    if (!dataset.ok()) return dataset.error();
    return (*dataset)->label_entries() > 0 ? Found(naming((*dataset)->has_label_names())) : Found();
  }
  if (test.format == data::RecordFormat::kXmc) return Found(Naming::kNumbers);
  if (!row_of(test.format).jsonl) return Found();
  auto source = data::open_bytes(host.disk, test.path);
  if (!source.ok()) return source.error();
  Found found;
  const auto read = data::read_jsonl(
      **source, {.skip_bad = UINT64_MAX}, [&found](const data::JsonlRecord& record) -> Result<void> {
        if (record.label_name.empty() && record.label_number.empty()) return {};
        found = naming(!record.label_name.empty());
        return Error{.kind = ErrorKind::kFailed, .where = "seen", .what = "enough"};
      });
  return found || read.ok() ? Result<Found>(found) : read.error();
}

// Labels by name that are to be matched by number, or the other way round, would match by chance.
Error other_labels(Naming got) {
  return {.kind = ErrorKind::kBadData,
          .where = {},
          .what = got == Naming::kNames ? "the model knows its labels by number"
                                        : "the model knows its labels by name",
          .got = got == Naming::kNames ? "labels by name" : "labels by number",
          .expected = "labels as the training records have them",
          .fix = "write the labels as in the training records"};
}

// The numbers that a test set's labels have in the model; empty when they are the same.
std::vector<std::uint32_t> label_numbers(const data::Dataset& dataset, data::NameTable& table) {
  std::vector<std::uint32_t> numbers;
  if (!dataset.has_label_names()) return numbers;
  for (std::uint32_t label = 0; label < dataset.labels(); ++label)
    numbers.push_back(table.id(dataset.label_name(label)));
  return numbers;
}

// The numbers that a test set's features have in the model; empty when they are the same. A name that the
// model does not have becomes a number that it does not have either.
std::vector<std::uint32_t> feature_numbers(const data::Dataset& dataset, TestBlocks& blocks) {
  std::vector<std::uint32_t> numbers;
  if (!dataset.has_feature_names()) return numbers;
  const auto none = static_cast<std::uint32_t>(blocks.model().network.shape.features);
  for (std::uint32_t feature = 0; feature < dataset.features(); ++feature) {
    numbers.push_back(blocks.parser().find_name(dataset.feature_name(feature)).value_or(none));
  }
  return numbers;
}

Result<void> read_cached_test(const run::NodeHost& host, const std::string& path, TestBlocks& blocks) {
  auto dataset = data::CachedDataset::open(host.disk, path, host.compute);
  if (!dataset.ok()) return dataset.error();
  const FeatureKind wanted = feature_kind(blocks.model());
  if (const FeatureKind got = feature_kind(**dataset); got != wanted) {
    return wrong_kind({.where = path, .got = got, .expected = wanted});
  }
  if (dataset->get()->label_entries() == 0) return no_labels({.path = path}, nullptr);
  if (const Naming got = (*dataset)->has_label_names() ? Naming::kNames : Naming::kNumbers;
      got != naming(blocks.model())) {
    Error error = other_labels(got);
    error.where = path;
    return error;
  }
  data::NameTable table = label_table(blocks.model());
  const std::vector<std::uint32_t> numbers = label_numbers(**dataset, table);
  const std::vector<std::uint32_t> renumbered = feature_numbers(**dataset, blocks);
  const auto features = static_cast<std::uint32_t>(blocks.model().network.shape.features);
  std::vector<std::uint32_t> labels;
  std::vector<std::pair<std::uint32_t, float>> pairs;
  for (std::uint64_t i = 0; i < (*dataset)->size(); ++i) {
    const data::Record record = (*dataset)->record(RecordIndex(i));
    if (renumbered.empty()) {
      blocks.parser().add_numbers(record.features, blocks.queries());
    } else {
      pairs.clear();
      for (std::size_t k = 0; k < record.features.index.size(); ++k) {
        const std::uint32_t number = renumbered[record.features.index[k]];
        if (number < features) pairs.emplace_back(number, record.features.value[k]);
      }
      blocks.parser().add_features(pairs, blocks.queries());
    }
    labels.clear();
    for (const std::uint32_t label : record.labels)
      labels.push_back(numbers.empty() ? label : numbers[label]);
    std::ranges::sort(labels);
    if (auto done = blocks.truth(labels); !done.ok()) return done;
  }
  blocks.name_labels(table);
  return {};
}

// Reads the file of a test set that is not imported.
Result<void> read_test_file(const run::NodeHost& host, const TestSet& test, TestBlocks& blocks) {
  run::Progress progress(host.console, host.clock, "reading test records", host.verbosity);
  data::ReadOptions options{.skip_bad = test.skip_bad, .compute = &host.compute};
  options.progress = [&progress](const data::ReadProgress& now) -> Result<void> {
    progress.update({.done = now.records, .total = 0, .unit = "records", .detail = {}});
    return {};
  };
  auto source = open_source(host.disk, test.source);
  if (!source.ok()) return source.error();
  auto report = row_of(test.source.format).test(**source, options, blocks);
  if (!report.ok()) {
    Error error = report.error();
    if (error.where.empty()) error.where = test.source.path;
    return error;
  }
  progress.finish();
  if (lacks_labels(test.source, *report)) return no_labels(test.source, &*report);
  if ((*report).skipped > 0) host.warn(describe_skipped(*report));
  return {};
}

// Whether the features of the format are those of the model. JSON lines tell it one by one.
Result<void> check_features(const TestSet& test, const sparse_engine::Model& model) {
  const RecordRow& row = row_of(test.source.format);
  const FeatureKind wanted = feature_kind(model);
  const FeatureKind got = row.features.value_or(wanted);
  if (row.jsonl || got == wanted) return {};
  return wrong_kind({.where = test.source.path, .got = got, .expected = wanted});
}

}  // namespace

Result<void> TestBlocks::truth(std::span<const std::uint32_t> labels) {
  CHECK(queries_.size() == begin_.size(), queries_.size(), begin_.size());
  unseen_.labels += labels.size();
  if (!labels.empty() && says_nothing(queries_.rows().row(queries_.size() - 1))) ++nothing_known_;
  for (const std::uint32_t label : labels) {
    if (label < model_.label_count.size() && model_.label_count[label] > 0) continue;
    if (++unseen_.unseen > 1) continue;
    first_unseen_ = label;
    unseen_.first = fmt::format("{}", label);
  }
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  begin_.push_back(static_cast<std::uint32_t>(labels_.size()));
  if (queries_.size() < records_per_block_) return {};
  if (auto done = run(); !done.ok()) return done;
  if (stop_ && stop_()) return Error{.kind = ErrorKind::kFailed, .where = "evaluation", .what = "stopped"};
  return {};
}

void TestBlocks::name_labels(const data::NameTable& names) {
  if (unseen_.unseen > 0 && first_unseen_ < names.size())
    unseen_.first = std::string(names.name(first_unseen_));
}

Result<void> TestBlocks::run() {
  if (queries_.size() == 0) return {};
  auto taken = take(queries_.rows(), {.begin = begin_, .label = labels_});
  queries_.clear();
  labels_.clear();
  begin_.assign(1, 0);
  return taken;
}

Result<data::ReadReport> test_xmlc(data::ByteSource& source, const data::ReadOptions& options,
                                   TestBlocks& blocks) {
  return data::read_xmlc(source, options, [&](const data::Record& record) -> Result<void> {
    if (!record.labels.empty() && naming(blocks.model()) == Naming::kNames)
      return other_labels(Naming::kNumbers);
    blocks.parser().add_numbers(record.features, blocks.queries());
    return blocks.truth(record.labels);
  });
}

Result<data::ReadReport> test_jsonl(data::ByteSource& source, const data::ReadOptions& options,
                                    TestBlocks& blocks) {
  data::RecordAssembler assembler(label_table(blocks.model()), data::NameTable());
  auto report = data::read_jsonl(source, options, [&](const data::JsonlRecord& record) -> Result<void> {
    if (!record.label_name.empty() && naming(blocks.model()) == Naming::kNumbers)
      return other_labels(Naming::kNames);
    if (!record.label_number.empty() && naming(blocks.model()) == Naming::kNames)
      return other_labels(Naming::kNumbers);
    auto labels = assembler.labels(record);
    if (!labels.ok()) return labels.error();
    auto done = blocks.parser().add_record(record, blocks.queries());
    if (!done.ok()) return done;
    return blocks.truth(*labels);
  });
  blocks.name_labels(assembler.label_names());
  return report;
}

Result<data::ReadReport> test_sessions(data::ByteSource& source, const data::ReadOptions& options,
                                       TestBlocks& blocks) {
  data::NameTable labels = label_table(blocks.model());
  std::vector<std::uint32_t> known;  // items before the position
  auto report = data::read_sessions(source, options, [&](const data::Session& session) -> Result<void> {
    known.clear();
    const auto ask = [&](std::string_view next) {
      blocks.parser().add_line(known, blocks.queries());
      const std::uint32_t label = labels.id(next);
      return blocks.truth({&label, 1});
    };
    for (std::size_t at = 0; at < session.items.size(); ++at) {
      if (at > 0 && session.target.empty()) {
        if (auto done = ask(session.items[at]); !done.ok()) return done;
      }
      const auto number = blocks.parser().find_name(session.items[at]);
      if (number.has_value()) known.push_back(*number);
    }
    if (!session.target.empty()) return ask(session.target);
    return {};
  });
  blocks.name_labels(labels);
  return report;
}

Result<data::ReadReport> test_words(data::ByteSource& source, const data::ReadOptions& options,
                                    TestBlocks& blocks) {
  data::TokenText text;
  auto report = data::read_words(source, options, [&](std::string_view word) -> Result<void> {
    if (word.empty()) {
      text.token.push_back(data::TokenText::kLineEnd);
    } else if (const auto number = blocks.parser().find_name(word); number.has_value()) {
      text.token.push_back(*number);
    }
    return {};
  });
  if (!report.ok()) return report;
  const std::uint32_t window = std::max(1U, blocks.model().line->last / 2);
  std::vector<std::uint32_t> context;
  for (std::size_t at = 0; at < text.token.size(); ++at) {
    if (text.token[at] == data::TokenText::kLineEnd) continue;
    context.clear();
    data::full_window(text, at, window, context);
    if (context.empty()) continue;
    blocks.parser().add_line(context, blocks.queries());
    if (auto done = blocks.truth({&text.token[at], 1}); !done.ok()) return done.error();
  }
  return report;
}

Result<void> check_label_naming(const run::NodeHost& host, const Source& test, bool by_name) {
  const auto found = first_naming(host, test);
  if (!found.ok()) return found.error();
  if (!*found || **found == naming(by_name)) return {};
  Error error = other_labels(**found);
  error.where = test.path;
  error.what = by_name ? "the training records have their labels by name"
                       : "the training records have their labels by number";
  return error;
}

Result<void> read_test_set(const run::NodeHost& host, const TestSet& test, TestBlocks& blocks) {
  if (auto checked = check_features(test, blocks.model()); !checked.ok()) return checked;
  const bool imported = row_of(test.source.format).test == nullptr;
  auto read =
      imported ? read_cached_test(host, test.source.path, blocks) : read_test_file(host, test, blocks);
  if (!read.ok()) return read;
  if (auto done = blocks.run(); !done.ok()) return done;
  const UnknownFeatures& unknown = blocks.parser().unknown_features();
  if (unknown.unknown > 0) host.warn(describe_unknown(unknown, feature_kind(blocks.model())));
  if (blocks.unseen().unseen > 0) host.warn(describe_unseen(blocks.unseen()));
  if (blocks.nothing_known() > 0) host.warn(describe_unknown_records(blocks.nothing_known()));
  return {};
}

}  // namespace gossamer::commands
