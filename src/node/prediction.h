// SPDX-License-Identifier: Apache-2.0
//
// What is done with a trained model: measure it on a test set, answer queries. Both read in blocks, so memory
// does not grow with the input.
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
#include "engines/sparse/evaluation.h"
#include "engines/sparse/model.h"
#include "engines/sparse/predictor.h"
#include "node/node_host.h"
#include "node/queries.h"
#include "node/training_data.h"

namespace gossamer::node {

// Who answers. All but the first are baselines, to see what each part is worth.
enum class Scorer {
  kFused,        // the net with the training records, where the model has kept them
  kNet,          // the net alone
  kNearestRows,  // the labels of the nearest training records by input cosine, the nearest first
  kFrequent,     // the most frequent labels, whatever the query
};

// "exact" or "lsh"; kUsage for another word.
[[nodiscard]] Result<engine::Retrieval> parse_retrieval(std::string_view word);

class TestBlocks;

struct TestSet {
  Source source;
  std::uint64_t skip_bad = 0;
};
// Reads all of it. Labels and features are matched by name where the model has names, else by number. kUsage
// when it tells its features otherwise than the training records did.
[[nodiscard]] Result<void> read_test_set(const NodeHost& host, const TestSet& test, TestBlocks& blocks);

struct EvaluateRequest {
  Source source;
  std::uint64_t skip_bad = 0;
  Scorer scorer = Scorer::kFused;
  engine::Retrieval retrieval = engine::Retrieval::kExact;
  std::function<bool()> stop = {};  // asked every thousand records; true: kFailed, "stopped"
};
// Errors are those of read_test_set().
[[nodiscard]] Result<engine::Metrics> evaluate_model(const NodeHost& host, const engine::Model& model,
                                                     const EvaluateRequest& request);
// By that predictor: scorer and retrieval of the request are not looked at.
[[nodiscard]] Result<engine::Metrics> evaluate_model(const NodeHost& host, const engine::Model& model,
                                                     engine::Predictor& predictor,
                                                     const EvaluateRequest& request);

// What data.format of a test file has to be where its content does not tell.
[[nodiscard]] std::optional<engine::DataFormat> test_format(const engine::Model& model);

// {"P@1":..,...} unrounded; an infinite median rank is null.
[[nodiscard]] std::string metrics_json(const engine::Metrics& metrics);
// The same as a small table for people.
[[nodiscard]] std::string metrics_text(const engine::Metrics& metrics);

// The model of DIR, a run directory or a model directory: kFailed when there is none.
[[nodiscard]] Result<std::string> find_model(const NodeHost& host, const std::string& directory);
// kBadData when it is damaged.
[[nodiscard]] Result<engine::Model> open_model(const NodeHost& host, const std::string& directory);

class PredictSession {
 public:
  struct Options {
    std::size_t top = 5;
    Scorer scorer = Scorer::kFused;
    engine::Retrieval retrieval = engine::Retrieval::kExact;
  };
  [[nodiscard]] static Result<std::unique_ptr<PredictSession>> create(const NodeHost& host,
                                                                      engine::Model model,
                                                                      const Options& options);

  // Of a predictor that is elsewhere in part: of the model's network nothing but the shape is needed. `make`
  // is called with the model in its place.
  [[nodiscard]] static std::unique_ptr<PredictSession> create(
      engine::Model model, std::size_t top,
      FunctionRef<std::unique_ptr<engine::Predictor>(const engine::Model& model)> make);

  struct Query {
    std::string text;
    std::string place;  // for messages: "stdin:3"
  };
  // Hands one JSON line per query to `sink`, in order:
  //   {"labels":[{"label":NUMBER,"name":"...","score":..},...],"unknown_features":N}
  // with "name" where the model has names, and N > 0 features by names that the model does not know, else
  // without. At a query that cannot be read the ones before it are
  // answered, then its error is returned.
  [[nodiscard]] Result<void> answer(std::span<const Query> queries,
                                    FunctionRef<void(std::string_view json)> sink);
  // The same lines with `top` labels for every query that can be read, whatever the others are; calls
  // sink(i, line or error) once for each query i, in any order.
  void answer_each(std::span<const Query> queries, std::size_t top,
                   FunctionRef<void(std::size_t query, const Result<std::string>& answer)> sink);
  [[nodiscard]] const engine::Model& model() const { return model_; }
  [[nodiscard]] std::size_t top() const { return top_; }

 private:
  PredictSession(engine::Model model, std::size_t top)
      : model_(std::move(model)), parser_(model_), top_(top) {}
  [[nodiscard]] std::string render(std::span<const engine::Scored> ranked, std::uint64_t unknown) const;

  engine::Model model_;
  QueryParser parser_;
  std::size_t top_;
  std::unique_ptr<engine::Predictor> predictor_;
  QueryBlock block_;
  std::vector<std::uint64_t> unknown_;  // of each query of the block
  engine::PredictionBlock out_;
};

}  // namespace gossamer::node
