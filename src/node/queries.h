// SPDX-License-Identifier: Apache-2.0
//
// What a model is asked: lines of a user as weighted sparse rows of the model's features. Understands, by the
// line: JSON ({"text": ...} or {"features": ...}), "INDEX:VALUE ..." for models of numbered features (labels
// in front are ignored), and anything else as text for models of text. Features that the model does not know
// are left out: they have no weight.
//
// Thread rule: one owner. The model must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model.h"
#include "learn/data/rows.h"
#include "learn/text/featurizer.h"

namespace gossamer::node {

// Rows back to back, as a Predictor takes them.
class QueryBlock {
 public:
  // Features at or above `features` are dropped; values are weighted.
  void add(const data::SparseRow& row, std::uint32_t features, const text::FeatureWeighting& weighting);
  void clear();
  [[nodiscard]] std::size_t size() const { return begin_.size() - 1; }
  [[nodiscard]] data::SparseRows rows() const { return {begin_, index_, value_}; }

 private:
  std::vector<std::uint32_t> begin_ = {0};
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
};

class QueryParser {
 public:
  explicit QueryParser(const engine::Model& model);

  // Adds the query of one line. kBadData with `where` = PLACE:COLUMN.
  [[nodiscard]] Result<void> add(std::string_view line, const std::string& place, QueryBlock& block);
  // Adds the query of a text. kUsage when the model does not read text.
  [[nodiscard]] Result<void> add_text(std::string_view text, QueryBlock& block);
  [[nodiscard]] bool reads_text() const { return featurizer_.has_value(); }

 private:
  [[nodiscard]] Result<void> add_json(std::string_view line, const std::string& place, QueryBlock& block);
  [[nodiscard]] Result<void> add_pairs(std::string_view line, const std::string& place, QueryBlock& block);

  const engine::Model& model_;
  std::optional<text::Featurizer> featurizer_;
  text::FeaturizerScratch scratch_;
};

}  // namespace gossamer::node
