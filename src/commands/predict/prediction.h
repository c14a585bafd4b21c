// SPDX-License-Identifier: Apache-2.0
//
// Measures a trained model on a test set, and answers queries with it. Both read in blocks, so
// memory does not grow with the input.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "commands/engine/query_session.h"
#include "commands/records/evaluation_set.h"
#include "commands/records/queries.h"
#include "commands/records/training_data.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/evaluation.h"
#include "engines/sparse/predict/predictor.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The part of a model that ranks labels. All but the first are baselines, to see what each part is worth.
enum class Scorer {
  kFused,        // the net, with the training records where the model keeps them
  kNet,          // the net alone
  kNearestRows,  // the labels of the nearest training records by input cosine, the nearest first
  kFrequent,     // the most frequent labels, whatever the query
};

// The error for a threshold on a model without probabilities.
[[nodiscard]] Error no_probabilities();

// "exact" or "lsh"; kUsage for another word.
[[nodiscard]] Result<sparse_engine::Retrieval> parse_retrieval(std::string_view word);

struct EvaluateRequest {
  Source source;
  std::uint64_t skip_bad = 0;
  Scorer scorer = Scorer::kFused;
  sparse_engine::Retrieval retrieval = sparse_engine::Retrieval::kExact;
  std::function<bool()> stop = {};  // asked every thousand records; true: kFailed, "stopped"
  // Where no label of the test records was seen in training, metrics are 0 or an error. So it is where the
  // model knows no feature of any of them; else they are those of blank queries.
  enum class NoneSeen { kMeasured, kRefused } none_seen = NoneSeen::kMeasured;
};
// Measures the model on the test set of the request. Errors are those of read_test_set(), and kBadData where
// the request refuses labels of which none was seen, and records of which nothing is known.
[[nodiscard]] Result<sparse_engine::Metrics> evaluate_model(const run::NodeHost& host,
                                                            const sparse_engine::Model& model,
                                                            const EvaluateRequest& request);
// The same, by that predictor. Scorer and retrieval of the request are not looked at.
[[nodiscard]] Result<sparse_engine::Metrics> evaluate_model(const run::NodeHost& host,
                                                            const sparse_engine::Model& model,
                                                            sparse_engine::Predictor& predictor,
                                                            const EvaluateRequest& request);

// Finds out what test records lie at `path`. Lines of names, and what is read once, do not tell their format.
// They are taken for records as the model was trained on them. Errors are those of find_source().
[[nodiscard]] Result<Source> find_test(host::Disk& disk, const std::string& path,
                                       const sparse_engine::Model& model);

// {"P@1":..,...} unrounded; an infinite median rank is null.
[[nodiscard]] std::string metrics_json(const sparse_engine::Metrics& metrics);
// The same as a small table for people.
[[nodiscard]] std::string metrics_text(const sparse_engine::Metrics& metrics);

// Reads a model. kBadData when it is damaged.
[[nodiscard]] Result<sparse_engine::Model> open_model(const run::NodeHost& host,
                                                      const std::string& directory);

class PredictSession final : public QuerySession {
 public:
  struct Options {
    std::size_t top = 5;
    Scorer scorer = Scorer::kFused;
    sparse_engine::Retrieval retrieval = sparse_engine::Retrieval::kExact;
    std::optional<double> threshold = {};  // labels with less probability are left out; 0..1
  };
  // kUsage for a threshold where the model gives no probabilities.
  [[nodiscard]] static Result<std::unique_ptr<PredictSession>> create(const run::NodeHost& host,
                                                                      sparse_engine::Model model,
                                                                      const Options& options);

  // A session whose predictor lies in part on other nodes. It needs only the shape of the model's network.
  // `make` is called with the model in its final place.
  [[nodiscard]] static std::unique_ptr<PredictSession> create(
      sparse_engine::Model model, std::size_t top, std::optional<double> threshold,
      FunctionRef<std::unique_ptr<sparse_engine::Predictor>(const sparse_engine::Model& model)> make);

  // The line of a query:
  //   {"labels":[{"label":NUMBER,"name":"...","score":..,"probability":..},...],"unknown_features":N,
  //    "nothing_known":true,"ignored_keys":["..."]}
  // "name" is there where the model has names, "probability" where it was calibrated. "unknown_features" is
  // there when the model does not know N > 0 words, names or numbers of the query. "nothing_known" is there
  // when nothing of the query has a weight: the labels are then those of a blank query. "ignored_keys" is
  // there when the query has keys that nothing looks at.
  [[nodiscard]] Result<void> answer(std::span<const Query> queries,
                                    FunctionRef<void(std::string_view json)> sink) override;
  void answer_each(std::span<const Query> queries, std::size_t top,
                   FunctionRef<void(std::size_t query, const Result<std::string>& answer)> sink) override;
  [[nodiscard]] const sparse_engine::Model& model() const { return model_; }
  [[nodiscard]] std::size_t top() const override { return top_; }
  [[nodiscard]] std::uint64_t nothing_known() const override { return nothing_known_; }
  [[nodiscard]] IgnoredKeys ignored_keys() const override { return all_ignored_; }
  // Directory, task, form of the queries, sizes, and the number of labels that come back.
  [[nodiscard]] std::string describe(const std::string& directory) const override;

 private:
  PredictSession(sparse_engine::Model model, std::size_t top, std::optional<double> threshold)
      : model_(std::move(model)), parser_(model_), top_(top), threshold_(threshold) {}
  // The line of a query of the block. kBadData where a score is not finite: the query overflows.
  [[nodiscard]] Result<std::string> line_of(const Query& asked, std::size_t query) const;
  [[nodiscard]] std::string render(std::span<const sparse_engine::Scored> ranked, std::size_t query) const;
  // How likely the i-th label of a query of the block is right. Requires that the model says so.
  [[nodiscard]] float probability(std::size_t query, std::size_t i) const {
    return out_.probability[query * out_.top_k + i];
  }
  // Adds a query to the block.
  [[nodiscard]] Result<void> read(const Query& query);

  sparse_engine::Model model_;
  QueryParser parser_;
  std::size_t top_;
  std::optional<double> threshold_;
  std::unique_ptr<sparse_engine::Predictor> predictor_;
  QueryBlock block_;
  std::vector<std::uint64_t> unknown_;             // unknown features of each query of the block
  std::vector<std::vector<std::string>> ignored_;  // keys of each query of the block
  std::uint64_t nothing_known_ = 0;
  IgnoredKeys all_ignored_;
  sparse_engine::PredictionBlock out_;
};

}  // namespace gossamer::commands
