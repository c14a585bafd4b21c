// SPDX-License-Identifier: Apache-2.0
//
// Predictor: the best labels of queries, by the net and the training rows together (fusion.h).
//
// Queries are processed in query blocks of at most kQueryBlock. In a query block the hidden layer and the
// fusion are shared out by query. The exact searches over all labels and over all training rows are shared
// out by row. Every search has a strict order (higher score, then smaller id). So the answer to a query
// depends neither on the number of workers nor on the queries beside it.
//
// Owner: one thread, which also owns the Compute. Model and kernels must outlive it. Memory: the inverted
// index of the training rows (about 8 bytes a feature entry) and buffers for one query block per worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/model/ranking.h"
#include "engines/sparse/predict/evaluation.h"
#include "engines/sparse/predict/fusion.h"
#include "engines/sparse/predict/row_search.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/data/rows.h"

namespace gossamer::sparse_engine {

// How the net's best labels are found.
enum class Retrieval {
  kExact,           // row_search.h
  kHashed,          // hashed_search.h: some may be missing
  kHashedMeasured,  // the same, and the exact search measures how many: recall()
};

struct PredictOptions {
  FusionOptions fusion = {};
  PredictParts parts = {};
  Retrieval retrieval = Retrieval::kExact;
};

// Whether answers have probabilities.
[[nodiscard]] inline bool has_probabilities(const PredictOptions& options) {
  return options.parts == PredictParts() ? options.fusion.calibration.has_value()
                                         : options.parts == kNetAlone && options.fusion.net_calibration;
}

// The options of a model: all parts with its own fusion when it holds training rows, else the net alone.
[[nodiscard]] PredictOptions default_options(const Model& model);

// The ranked labels of several queries: query q has count[q] <= top_k entries from entry q * top_k on.
struct PredictionBlock {
  bool with_terms = false;  // whether the fusion's terms of each entry are wanted
  std::size_t top_k = 0;
  std::vector<std::uint32_t> count;
  std::vector<Scored> entries;
  std::vector<FusionVector> terms;  // as entries; empty unless wanted, and from predictors without fusion
  // As entries: how likely each label is right (Calibration), and its share of the softmax. Both are empty
  // from predictors without fusion; probabilities also where the model has no calibration.
  std::vector<float> probability;
  std::vector<float> share;

  // Takes what the fusion says of the entries of query q.
  void take_shares(const Fusion& fusion, std::size_t q);

  [[nodiscard]] std::size_t queries() const { return count.size(); }
  // Best first. Requires q < queries().
  [[nodiscard]] std::span<const Scored> row(std::size_t q) const {
    return std::span(entries).subspan(q * top_k, count[q]);
  }
};

class Predictor {
 public:
  // Builds the index of the training rows. The error is kUsage: a part without data in the model, no part at
  // all, or an option out of its range.
  [[nodiscard]] static Result<std::unique_ptr<Predictor>> create(const Model& model,
                                                                 const kernels::Kernels& kernels,
                                                                 host::Compute& compute,
                                                                 const PredictOptions& options);
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;
  virtual ~Predictor() = default;

  // Ranks labels for queries as they came, not weighted (any number of rows, indices below the network's
  // features). Requires top_k >= 1. Fewer than top_k labels come back only if all parts together name fewer.
  // Scores are comparable within a query only. An error leaves `out` unspecified; predictors of one process
  // have none.
  [[nodiscard]] virtual Result<void> predict(const data::SparseRows& queries, std::size_t top_k,
                                             PredictionBlock& out) = 0;

  // The recall over all queries so far, for Retrieval::kHashedMeasured.
  [[nodiscard]] virtual std::optional<RetrievalRecall> recall() const { return std::nullopt; }

 protected:
  Predictor() = default;
};

}  // namespace gossamer::sparse_engine
