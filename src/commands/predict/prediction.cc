// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/prediction.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "commands/predict/block_evaluation.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/predict/frequent_labels.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/record_assembler.h"
#include "learn/data/read/session_reader.h"
#include "learn/data/read/word_reader.h"
#include "learn/data/read/xmlc_reader.h"
#include "learn/data/text_windows.h"
#include "learn/data/token_text.h"

namespace gossamer::commands {
namespace {

Result<std::unique_ptr<sparse_engine::Predictor>> make_predictor(const run::NodeHost& host,
                                                                 const sparse_engine::Model& model,
                                                                 Scorer scorer,
                                                                 sparse_engine::Retrieval retrieval) {
  if (scorer == Scorer::kFrequent) return sparse_engine::frequent_labels(model);
  sparse_engine::PredictOptions options = sparse_engine::default_options(model);
  options.retrieval = retrieval;
  if (scorer == Scorer::kNet) options.parts = sparse_engine::kNetAlone;
  if (scorer == Scorer::kNearestRows) {
    options.parts = sparse_engine::kNearestRowsAlone;
    // With so steep a vote, the nearest record's labels come first, then the next one's, and so on.
    options.fusion.input_vote_power = 64;
  }
  return sparse_engine::Predictor::create(model, host.kernels, host.compute, options);
}

data::NameTable label_table(const sparse_engine::Model& model) {
  data::NameTable table;
  for (std::size_t i = 0; i < model.label_names.size(); ++i) table.id(model.label_names[i]);
  return table;
}

// Says which names the model does not know. Requires that there are some.
std::string describe_unknown(const UnknownNames& names) {
  return fmt::format(
      "{} of {} feature names of the test records are not in the model and left out, such as '{}'",
      run::human_count(names.unknown), run::human_count(names.of), names.first);
}

// Makes a test record of every position from the second on, or of the target alone.
Result<data::ReadReport> read_test_sessions(data::ByteSource& source, const data::ReadOptions& options,
                                            TestBlocks& evaluation) {
  data::NameTable labels = label_table(evaluation.model());
  std::vector<std::uint32_t> known;  // items before the position
  return data::read_sessions(source, options, [&](const data::Session& session) -> Result<void> {
    known.clear();
    const auto ask = [&](std::string_view next) {
      evaluation.parser().add_line(known, evaluation.queries());
      const std::uint32_t label = labels.id(next);
      return evaluation.truth({&label, 1});
    };
    for (std::size_t at = 0; at < session.items.size(); ++at) {
      if (at > 0 && session.target.empty()) {
        if (auto done = ask(session.items[at]); !done.ok()) return done;
      }
      const auto number = evaluation.parser().find_name(session.items[at]);
      if (number.has_value()) known.push_back(*number);
    }
    if (!session.target.empty()) return ask(session.target);
    return {};
  });
}

// Makes a test record of every word that the model knows. Its features are the words around it, as many as a
// window held in training. Words that the model does not know are left out before.
Result<data::ReadReport> read_test_words(data::ByteSource& source, const data::ReadOptions& options,
                                         TestBlocks& evaluation) {
  data::TokenText text;
  auto report = data::read_words(source, options, [&](std::string_view word) -> Result<void> {
    if (word.empty()) {
      text.token.push_back(data::TokenText::kLineEnd);
    } else if (const auto number = evaluation.parser().find_name(word); number.has_value()) {
      text.token.push_back(*number);
    }
    return {};
  });
  if (!report.ok()) return report;
  const std::uint32_t window = std::max(1U, evaluation.model().line->last / 2);
  std::vector<std::uint32_t> context;
  for (std::size_t at = 0; at < text.token.size(); ++at) {
    if (text.token[at] == data::TokenText::kLineEnd) continue;
    context.clear();
    data::full_window(text, at, window, context);
    if (context.empty()) continue;
    evaluation.parser().add_line(context, evaluation.queries());
    if (auto done = evaluation.truth({&text.token[at], 1}); !done.ok()) return done.error();
  }
  return report;
}

Result<data::ReadReport> read_test(data::ByteSource& source, const data::ReadOptions& options,
                                   RecordFormat format, TestBlocks& evaluation) {
  const sparse_engine::Model& model = evaluation.model();
  const auto features = static_cast<std::uint32_t>(model.network.shape.features);
  if (format == RecordFormat::kXmc) {
    return data::read_xmlc(source, options, [&](const data::Record& record) -> Result<void> {
      evaluation.queries().add(record.features, features);
      return evaluation.truth(record.labels);
    });
  }
  if (format == RecordFormat::kSessions) return read_test_sessions(source, options, evaluation);
  if (format == RecordFormat::kText) return read_test_words(source, options, evaluation);
  data::RecordAssembler assembler(label_table(model), data::NameTable());
  return data::read_jsonl(source, options, [&](const data::JsonlRecord& record) -> Result<void> {
    auto labels = assembler.labels(record);
    if (!labels.ok()) return labels.error();
    auto done = evaluation.parser().add_record(record, evaluation.queries());
    if (!done.ok()) return done;
    return evaluation.truth(*labels);
  });
}

// The numbers that a test set's labels have in the model. They are matched by name where both have names.
std::vector<std::uint32_t> label_numbers(const data::Dataset& dataset, const sparse_engine::Model& model) {
  std::vector<std::uint32_t> numbers(dataset.labels());
  data::NameTable table = label_table(model);
  const bool by_name = dataset.has_label_names() && table.size() > 0;
  for (std::uint32_t label = 0; label < numbers.size(); ++label) {
    numbers[label] = by_name ? table.id(dataset.label_name(label)) : label;
  }
  return numbers;
}

// The numbers that a test set's features have in the model; empty when they are the same. A name that the
// model does not have becomes a number that it does not have either.
std::vector<std::uint32_t> feature_numbers(const data::Dataset& dataset, TestBlocks& evaluation) {
  std::vector<std::uint32_t> numbers;
  if (!dataset.has_feature_names()) return numbers;
  const auto none = static_cast<std::uint32_t>(evaluation.model().network.shape.features);
  for (std::uint32_t feature = 0; feature < dataset.features(); ++feature) {
    numbers.push_back(evaluation.parser().find_name(dataset.feature_name(feature)).value_or(none));
  }
  return numbers;
}

Result<void> read_cached_test(const run::NodeHost& host, const std::string& path, TestBlocks& evaluation) {
  auto dataset = data::CachedDataset::open(host.disk, path, host.compute);
  if (!dataset.ok()) return dataset.error();
  const FeatureKind wanted = feature_kind(evaluation.model());
  if (const FeatureKind got = feature_kind(**dataset); got != wanted) {
    return wrong_kind({.where = path, .got = got, .expected = wanted});
  }
  const std::vector<std::uint32_t> numbers = label_numbers(**dataset, evaluation.model());
  const std::vector<std::uint32_t> renumbered = feature_numbers(**dataset, evaluation);
  const auto features = static_cast<std::uint32_t>(evaluation.model().network.shape.features);
  std::vector<std::uint32_t> labels;
  std::vector<std::pair<std::uint32_t, float>> pairs;
  for (std::uint64_t i = 0; i < (*dataset)->size(); ++i) {
    const data::Record record = (*dataset)->record(RecordIndex(i));
    if (renumbered.empty()) {
      evaluation.queries().add(record.features, features);
    } else {
      pairs.clear();
      for (std::size_t k = 0; k < record.features.index.size(); ++k) {
        const std::uint32_t number = renumbered[record.features.index[k]];
        if (number < features) pairs.emplace_back(number, record.features.value[k]);
      }
      evaluation.parser().add_features(pairs, evaluation.queries());
    }
    labels.clear();
    for (const std::uint32_t label : record.labels) labels.push_back(numbers[label]);
    std::ranges::sort(labels);
    if (auto done = evaluation.truth(labels); !done.ok()) return done;
  }
  return {};
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

}  // namespace

Result<sparse_engine::Retrieval> parse_retrieval(std::string_view word) {
  if (word == "exact") return sparse_engine::Retrieval::kExact;
  if (word == "lsh") return sparse_engine::Retrieval::kHashed;
  return Error{.kind = ErrorKind::kUsage,
               .where = "--retrieval",
               .what = "no such way to find labels",
               .got = fmt::format("'{}'", word),
               .expected = "exact or lsh",
               .fix = "leave it out for exact lists"};
}

namespace {

// Reads the file of a test set that is not imported.
Result<void> read_test_file(const run::NodeHost& host, const TestSet& test, TestBlocks& evaluation) {
  run::Progress progress(host.console, host.clock, "reading test records", host.verbosity);
  data::ReadOptions options{.skip_bad = test.skip_bad, .compute = &host.compute};
  options.progress = [&progress](const data::ReadProgress& now) -> Result<void> {
    progress.update({.done = now.records, .total = 0, .unit = "records", .detail = {}});
    return {};
  };
  auto source = data::open_bytes(host.disk, test.source.path);
  if (!source.ok()) return source.error();
  auto report = read_test(**source, options, test.source.format, evaluation);
  if (!report.ok()) {
    Error error = report.error();
    if (error.where.empty()) error.where = test.source.path;
    return error;
  }
  progress.finish();
  if ((*report).skipped > 0) host.say(describe_skipped(*report));
  return {};
}

}  // namespace

Result<void> read_test_set(const run::NodeHost& host, const TestSet& test, TestBlocks& evaluation) {
  const RecordFormat format = test.source.format;
  if (format == RecordFormat::kXmc || format == RecordFormat::kSessions || format == RecordFormat::kText) {
    const FeatureKind wanted = feature_kind(evaluation.model());
    const FeatureKind got = format == RecordFormat::kXmc        ? FeatureKind::kNumbers
                            : format == RecordFormat::kSessions ? FeatureKind::kSessions
                                                                : FeatureKind::kWords;
    if (got != wanted) return wrong_kind({.where = test.source.path, .got = got, .expected = wanted});
  }
  const auto read = format == RecordFormat::kCache ? read_cached_test(host, test.source.path, evaluation)
                                                   : read_test_file(host, test, evaluation);
  if (!read.ok()) return read;
  if (auto done = evaluation.run(); !done.ok()) return done;
  const UnknownNames& unknown = evaluation.parser().unknown_names();
  if (unknown.unknown > 0) host.say(describe_unknown(unknown));
  return {};
}

Result<sparse_engine::Metrics> evaluate_model(const run::NodeHost& host, const sparse_engine::Model& model,
                                              const EvaluateRequest& request) {
  auto predictor = make_predictor(host, model, request.scorer, request.retrieval);
  if (!predictor.ok()) return predictor.error();
  return evaluate_model(host, model, **predictor, request);
}

Result<sparse_engine::Metrics> evaluate_model(const run::NodeHost& host, const sparse_engine::Model& model,
                                              sparse_engine::Predictor& predictor,
                                              const EvaluateRequest& request) {
  BlockEvaluation evaluation(model, predictor, request.stop);
  const TestSet test{.source = request.source, .skip_bad = request.skip_bad};
  if (auto read = read_test_set(host, test, evaluation); !read.ok()) return read.error();
  return evaluation.metrics();
}

std::optional<sparse_engine::DataFormat> test_format(const sparse_engine::Model& model) {
  switch (feature_kind(model)) {
    case FeatureKind::kSessions: return sparse_engine::DataFormat::kSessions;
    case FeatureKind::kWords: return sparse_engine::DataFormat::kText;
    default: return std::nullopt;
  }
}

std::string metrics_json(const sparse_engine::Metrics& metrics) {
  std::string json = "{";
  for (const auto& [name, value] : metrics.named()) {
    json += fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", name, number(value));
  }
  return json + "}";
}

std::string metrics_text(const sparse_engine::Metrics& metrics) {
  std::string text = fmt::format("{} test records", run::human_count(metrics.samples));
  if (metrics.without_labels > 0) {
    text +=
        fmt::format(" ({} more have no label and are left out)", run::human_count(metrics.without_labels));
  }
  text += "\n";
  int column = 0;
  for (const auto& [name, value] : metrics.named()) {
    const bool last = ++column % 3 == 0;
    const std::string shown = std::isfinite(value) ? fmt::format("{:.2f}", value) : "beyond the list";
    text += fmt::format("  {:<12} {:>7}{}", name, shown, last ? "\n" : "");
  }
  if (column % 3 == 0) text.pop_back();
  return text;
}

Result<std::string> find_model(const run::NodeHost& host, const std::string& directory) {
  for (const std::string& path : {directory + "/model", directory}) {
    auto there = host.disk.exists(path + "/model.json");
    if (!there.ok()) return there.error();
    if (*there) return path;
  }
  auto run = host.disk.exists(directory + "/run.toml");
  const bool unfinished = run.ok() && *run;
  return Error{.kind = ErrorKind::kFailed,
               .where = directory,
               .what = "there is no model in this directory",
               .got = unfinished ? "a run that has not finished" : "no model/model.json",
               .expected = "the directory of a finished run (train --out DIR), or its model/",
               .fix = unfinished ? "finish it: gossamer train ... --resume" : "check the path"};
}

Result<sparse_engine::Model> open_model(const run::NodeHost& host, const std::string& directory) {
  const auto path = find_model(host, directory);
  if (!path.ok()) return path.error();
  return sparse_engine::load_model(host.disk, *path);
}

std::unique_ptr<PredictSession> PredictSession::create(
    sparse_engine::Model model, std::size_t top,
    FunctionRef<std::unique_ptr<sparse_engine::Predictor>(const sparse_engine::Model& model)> make) {
  std::unique_ptr<PredictSession> session(new PredictSession(std::move(model), top));
  session->predictor_ = make(session->model_);
  return session;
}

Result<std::unique_ptr<PredictSession>> PredictSession::create(const run::NodeHost& host,
                                                               sparse_engine::Model model,
                                                               const Options& options) {
  std::unique_ptr<PredictSession> session(new PredictSession(std::move(model), options.top));
  auto predictor = make_predictor(host, session->model_, options.scorer, options.retrieval);
  if (!predictor.ok()) return predictor.error();
  session->predictor_ = std::move(*predictor);
  return session;
}

std::string PredictSession::render(std::span<const sparse_engine::Scored> ranked,
                                   std::uint64_t unknown) const {
  std::string json = "{\"labels\":[";
  for (const sparse_engine::Scored& each : ranked) {
    if (json.back() == '}') json += ',';
    json += fmt::format("{{\"label\":{}", each.id);
    if (each.id < model_.label_names.size()) {
      const nlohmann::json name = std::string(model_.label_names[each.id]);
      json +=
          fmt::format(",\"name\":{}", name.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    json += fmt::format(",\"score\":{}}}", each.score);
  }
  json += ']';
  if (unknown > 0) json += fmt::format(",\"unknown_features\":{}", unknown);
  return json + "}";
}

Result<void> PredictSession::answer(std::span<const Query> queries,
                                    FunctionRef<void(std::string_view json)> sink) {
  for (std::size_t first = 0; first < queries.size(); first += kPredictBlock) {
    Result<void> read;
    unknown_.clear();
    for (const Query& query : queries.subspan(first, std::min(kPredictBlock, queries.size() - first))) {
      const std::uint64_t before = parser_.unknown_names().unknown;
      read = parser_.add(query.text, query.place, block_);
      if (!read.ok()) break;
      unknown_.push_back(parser_.unknown_names().unknown - before);
    }
    const auto answered = block_.size() > 0 ? predictor_->predict(block_.rows(), top_, out_) : Result<void>();
    for (std::size_t q = 0; answered.ok() && q < block_.size(); ++q) sink(render(out_.row(q), unknown_[q]));
    block_.clear();
    if (!answered.ok()) return answered;
    if (!read.ok()) return read;
  }
  return {};
}

void PredictSession::answer_each(
    std::span<const Query> queries, std::size_t top,
    FunctionRef<void(std::size_t query, const Result<std::string>& answer)> sink) {
  std::vector<std::size_t> readable;  // places of the block's queries that can be read
  for (std::size_t first = 0; first < queries.size(); first += kPredictBlock) {
    readable.clear();
    unknown_.clear();
    for (std::size_t i = first; i < std::min(first + kPredictBlock, queries.size()); ++i) {
      const std::uint64_t before = parser_.unknown_names().unknown;
      if (const auto read = parser_.add(queries[i].text, queries[i].place, block_); !read.ok()) {
        sink(i, read.error());
        continue;
      }
      readable.push_back(i);
      unknown_.push_back(parser_.unknown_names().unknown - before);
    }
    const auto answered = block_.size() > 0 ? predictor_->predict(block_.rows(), top, out_) : Result<void>();
    for (std::size_t q = 0; q < readable.size(); ++q)
      sink(readable[q],
           answered.ok() ? Result<std::string>(render(out_.row(q), unknown_[q])) : answered.error());
    block_.clear();
  }
}

}  // namespace gossamer::commands
