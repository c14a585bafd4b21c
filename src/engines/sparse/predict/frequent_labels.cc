// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/frequent_labels.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace gossamer::sparse_engine {
namespace {

class FrequentLabels final : public Predictor {
 public:
  explicit FrequentLabels(const Model& model) {
    for (std::uint32_t label = 0; label < model.label_count.size(); ++label) {
      if (model.label_count[label] == 0) continue;
      ranking_.push_back({.id = label, .score = static_cast<float>(model.label_count[label])});
    }
    std::sort(ranking_.begin(), ranking_.end(), ranks_before);
  }

  Result<void> predict(const data::SparseRows& queries, std::size_t top_k, PredictionBlock& out) override {
    CHECK(top_k >= 1, top_k);
    const std::size_t count = std::min(top_k, ranking_.size());
    out.top_k = top_k;
    out.count.assign(queries.rows(), static_cast<std::uint32_t>(count));
    out.entries.resize(queries.rows() * top_k);
    out.share.clear();
    out.probability.clear();
    for (std::size_t q = 0; q < queries.rows(); ++q) {
      std::copy_n(ranking_.begin(), count, out.entries.begin() + static_cast<std::ptrdiff_t>(q * top_k));
    }
    return {};
  }

 private:
  std::vector<Scored> ranking_;
};

}  // namespace

std::unique_ptr<Predictor> frequent_labels(const Model& model) {
  return std::make_unique<FrequentLabels>(model);
}

}  // namespace gossamer::sparse_engine
