// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/prediction.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/printable.h"
#include "commands/predict/block_evaluation.h"
#include "commands/records/record_formats.h"
#include "commands/run/found_model.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/predict/frequent_labels.h"

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

Error none_seen(const std::string& path, const UnseenLabels& labels, const sparse_engine::Model& model) {
  const bool named = model.label_names.size() > 0;
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "no label of the test records was seen in training",
          .got = fmt::format("{}, such as {}", run::counted(labels.labels, "label"), quote(labels.first)),
          .expected = named ? fmt::format("labels such as {}", quote(model.label_names[0]))
                            : fmt::format("labels below {}", model.label_count.size()),
          .fix = "check that model and test records belong together"};
}

// Answers to records of which nothing is known are those to blank queries.
Error none_known(const std::string& path, std::uint64_t records, const sparse_engine::Model& model) {
  Error error{.kind = ErrorKind::kBadData,
              .where = path,
              .what = "the model knows no word or feature of any test record",
              .got = run::counted(records, "record"),
              .expected = fmt::format("features below {}", model.network.shape.features),
              .fix = "check that model and test records belong together"};
  if (model.feature_names.size() > 0)
    error.expected = fmt::format("features such as {}", quote(model.feature_names[0]));
  if (model.featurizer) error.expected = "texts with words of the training records";
  return error;
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

}  // namespace

Error no_probabilities() {
  return {.kind = ErrorKind::kUsage,
          .where = "--threshold",
          .what = "the model gives no probabilities",
          .got = "a model that was trained without held-out records, or by an earlier version",
          .expected = "one that was calibrated on records which training held out",
          .fix = "leave the flag out, or train again with predict.held_out=N"};
}

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
  const UnseenLabels& labels = evaluation.unseen();
  sparse_engine::Metrics metrics = evaluation.metrics();
  if (request.none_seen != EvaluateRequest::NoneSeen::kRefused) return metrics;
  if (labels.unseen == labels.labels) return none_seen(request.source.path, labels, model);
  if (metrics.nothing_known == metrics.samples)
    return none_known(request.source.path, metrics.samples, model);
  return metrics;
}

Result<Source> find_test(host::Disk& disk, const std::string& path, const sparse_engine::Model& model) {
  const RecordRow& row = row_of(feature_kind(model));
  const bool told = row.lines == nullptr && !is_read_once(disk, path);
  return find_source(disk, path, told ? std::nullopt : std::optional(row.format));
}

std::string metrics_json(const sparse_engine::Metrics& metrics) {
  std::string json = "{";
  for (const auto& [name, value] : metrics.named()) {
    json += fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", name, number(value));
  }
  return json + "}";
}

std::string metrics_text(const sparse_engine::Metrics& metrics) {
  std::string text = run::counted(metrics.samples, "test record");
  if (metrics.without_labels > 0) {
    const bool one = metrics.without_labels == 1;
    text += fmt::format(" ({} more {} no label and {} left out)", run::human_count(metrics.without_labels),
                        one ? "has" : "have", one ? "is" : "are");
  }
  if (metrics.unseen_labels > 0) {
    text += fmt::format("; {} of their {} labels were never seen in training",
                        run::human_count(metrics.unseen_labels), run::human_count(metrics.labels));
  }
  if (metrics.nothing_known > 0)
    text += fmt::format("; the model knows nothing of {} of them", run::human_count(metrics.nothing_known));
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

Result<sparse_engine::Model> open_model(const run::NodeHost& host, const std::string& directory) {
  const auto path = find_model(host, directory);
  if (!path.ok()) return path.error();
  auto model = sparse_engine::load_model(host.disk, *path);
  return model.ok() ? std::move(model) : model_error(host, directory, model.error());
}

std::unique_ptr<PredictSession> PredictSession::create(
    sparse_engine::Model model, std::size_t top, std::optional<double> threshold,
    FunctionRef<std::unique_ptr<sparse_engine::Predictor>(const sparse_engine::Model& model)> make) {
  std::unique_ptr<PredictSession> session(new PredictSession(std::move(model), top, threshold));
  session->predictor_ = make(session->model_);
  return session;
}

Result<std::unique_ptr<PredictSession>> PredictSession::create(const run::NodeHost& host,
                                                               sparse_engine::Model model,
                                                               const Options& options) {
  std::unique_ptr<PredictSession> session(
      new PredictSession(std::move(model), options.top, options.threshold));
  auto predictor = make_predictor(host, session->model_, options.scorer, options.retrieval);
  if (!predictor.ok()) return predictor.error();
  const auto& fusion = session->model_.fusion;
  const bool alone = options.scorer == Scorer::kNet || !session->model_.instances;
  if (options.threshold && !(alone ? fusion.net_calibration : fusion.calibration)) return no_probabilities();
  session->predictor_ = std::move(*predictor);
  return session;
}

std::string PredictSession::render(std::span<const sparse_engine::Scored> ranked, std::size_t query) const {
  std::string json = "{\"labels\":[";
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const sparse_engine::Scored& each = ranked[i];
    if (threshold_ && probability(query, i) < static_cast<float>(*threshold_))
      break;  // those behind it have no more
    if (json.back() == '}') json += ',';
    json += fmt::format("{{\"label\":{}", each.id);
    if (each.id < model_.label_names.size()) {
      const nlohmann::json name = std::string(model_.label_names[each.id]);
      json +=
          fmt::format(",\"name\":{}", name.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    json += fmt::format(",\"score\":{}", each.score);
    if (!out_.probability.empty()) json += fmt::format(",\"probability\":{}", probability(query, i));
    json += '}';
  }
  json += ']';
  if (unknown_[query] > 0) json += fmt::format(",\"unknown_features\":{}", unknown_[query]);
  if (says_nothing(block_.rows().row(query))) json += ",\"nothing_known\":true";
  if (!ignored_[query].empty()) {
    const nlohmann::json keys = ignored_[query];
    json += fmt::format(",\"ignored_keys\":{}",
                        keys.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return json + "}";
}

Result<std::string> PredictSession::line_of(const Query& asked, std::size_t query) const {
  const auto ranked = out_.row(query);
  const auto wrong = std::ranges::find_if_not(
      ranked, [](float x) { return std::isfinite(x); }, &sparse_engine::Scored::score);
  if (wrong == ranked.end()) return render(ranked, query);
  return Error{.kind = ErrorKind::kBadData,
               .where = asked.place,
               .what = "the model has no finite score for the query",
               .got = fmt::format("a score of {} for label {}", wrong->score, wrong->id),
               .expected = "values whose weighted sums a float can hold",
               .fix = "mend the query"};
}

Result<void> PredictSession::read(const Query& query) {
  if (auto read = parser_.add(query.text, query.place, block_); !read.ok()) return read;
  unknown_.push_back(parser_.unknown_of_last());
  ignored_.push_back(parser_.ignored_of_last());
  if (!ignored_.back().empty() && ++all_ignored_.queries == 1) all_ignored_.first = ignored_.back().front();
  if (says_nothing(block_.rows().row(block_.size() - 1))) ++nothing_known_;
  return {};
}

Result<void> PredictSession::answer(std::span<const Query> queries,
                                    FunctionRef<void(std::string_view json)> sink) {
  for (std::size_t first = 0; first < queries.size(); first += kPredictBlock) {
    Result<void> done;
    unknown_.clear();
    ignored_.clear();
    for (const Query& query : queries.subspan(first, std::min(kPredictBlock, queries.size() - first))) {
      done = read(query);
      if (!done.ok()) break;
    }
    auto answered = block_.size() > 0 ? predictor_->predict(block_.rows(), top_, out_) : Result<void>();
    for (std::size_t q = 0; answered.ok() && q < block_.size(); ++q) {
      const auto line = line_of(queries[first + q], q);
      if (line.ok()) sink(*line);
      if (!line.ok()) answered = line.error();
    }
    block_.clear();
    if (!answered.ok()) return answered;
    if (!done.ok()) return done;
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
    ignored_.clear();
    for (std::size_t i = first; i < std::min(first + kPredictBlock, queries.size()); ++i) {
      if (const auto done = read(queries[i]); !done.ok()) {
        sink(i, done.error());
      } else {
        readable.push_back(i);
      }
    }
    const auto answered = block_.size() > 0 ? predictor_->predict(block_.rows(), top, out_) : Result<void>();
    for (std::size_t q = 0; q < readable.size(); ++q)
      sink(readable[q], answered.ok() ? line_of(queries[readable[q]], q) : answered.error());
    block_.clear();
  }
}

std::string PredictSession::describe(const std::string& directory) const {
  using Json = nlohmann::ordered_json;
  const Json json = {{"model", directory},
                     {"task", model_.task},
                     {"queries", name(feature_kind(model_))},
                     {"features", model_.network.shape.features},
                     {"labels", model_.network.shape.labels},
                     {"hidden", model_.network.shape.hidden},
                     {"label_names", model_.label_names.size() > 0},
                     {"training_records", model_.training_rows},
                     {"top", top_}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gossamer::commands
