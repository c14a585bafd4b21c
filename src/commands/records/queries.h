// SPDX-License-Identifier: Apache-2.0
//
// Turns the lines of a user into sparse rows of the model's features. A line may be:
//
//   {"text": ...} or {"features": ...}   JSON
//   INDEX:VALUE ...                      for models of numbered features (labels in front are ignored)
//   NAME NAME ...                        names between blanks, for models of sessions and words
//   anything else                        text, for models of text
//
// A byte order mark in front is left out, as readers of records do: some programs begin a file with it.
//
// Words, names and numbers that the model does not know are left out, because they have no weight. They are
// counted, for they may be misspelt. So are keys of a JSON object that a query does not have, "context" among
// them; the labels of a record are passed over. A blank line is a query of which nothing is known.
//
// Thread rule: one owner. The model must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model/model.h"
#include "learn/data/line_bag.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/rows.h"
#include "learn/text/featurizer.h"

namespace gossamer::commands {

// A block of rows back to back, as a Predictor takes them.
class QueryBlock {
 public:
  // Features at or above `features` are dropped. Returns how many.
  std::uint64_t add(const data::SparseRow& row, std::uint32_t features);
  void clear();
  [[nodiscard]] std::size_t size() const { return begin_.size() - 1; }
  [[nodiscard]] data::SparseRows rows() const { return {begin_, index_, value_}; }

 private:
  std::vector<std::uint32_t> begin_ = {0};
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
};

// Whether a row says nothing to a model. A feature of value 0 weighs as much as one that is left out.
[[nodiscard]] bool says_nothing(const data::SparseRow& row);

// Features that the model does not have, by name, or by number where it has no names.
struct UnknownFeatures {
  std::uint64_t unknown = 0;
  std::uint64_t of = 0;  // features in all
  std::string first;     // of the unknown ones
};

class QueryParser {
 public:
  explicit QueryParser(const sparse_engine::Model& model);

  // Adds the query of one line. kBadData has `where` = PLACE:COLUMN.
  [[nodiscard]] Result<void> add(std::string_view line, const std::string& place, QueryBlock& block);
  // The same for lines of one kind: a text, names between blanks, INDEX:VALUE pairs. add() takes the kind
  // that the model's features have (record_formats.h).
  [[nodiscard]] Result<void> add_text_line(std::string_view line, const std::string& place,
                                           QueryBlock& block);
  [[nodiscard]] Result<void> add_items(std::string_view line, const std::string& place, QueryBlock& block);
  [[nodiscard]] Result<void> add_pairs(std::string_view line, const std::string& place, QueryBlock& block);
  // Adds the query of a text. kUsage when the model does not read text.
  [[nodiscard]] Result<void> add_text(std::string_view text, QueryBlock& block);
  // Adds the query of a line of names by their numbers. Requires a model of lines (Model::line).
  void add_line(std::span<const std::uint32_t> items, QueryBlock& block);
  // Adds the query of a JSON line that has been read. kUsage without `where` when the model was trained on
  // another kind.
  [[nodiscard]] Result<void> add_record(const data::JsonlRecord& record, QueryBlock& block);
  // Adds the query of features by their numbers; counts those that the model does not know.
  void add_numbers(const data::SparseRow& row, QueryBlock& block);
  // Adds the query of distinct feature numbers and their values; sorts them.
  void add_features(std::vector<std::pair<std::uint32_t, float>>& pairs, QueryBlock& block);
  [[nodiscard]] bool reads_text() const { return featurizer_.has_value(); }
  // The number of a name, unless the model does not know it; counts it either way.
  [[nodiscard]] std::optional<std::uint32_t> find_name(std::string_view name);
  // The words, names or numbers of the query that was added last which the model does not know.
  [[nodiscard]] std::uint64_t unknown_of_last() const { return unknown_of_last_; }
  // The keys of the query that was added last which nothing looks at, at most ReadReport::kMaxKeys and
  // "context".
  [[nodiscard]] const std::vector<std::string>& ignored_of_last() const { return ignored_of_last_; }
  // The unknown names and numbers of all queries of records so far.
  [[nodiscard]] const UnknownFeatures& unknown_features() const { return unknown_; }

 private:
  void add_names(const data::JsonlRecord& record, QueryBlock& block);
  [[nodiscard]] Result<void> add_any(std::string_view line, const std::string& place, QueryBlock& block);
  [[nodiscard]] Result<void> add_json(std::string_view line, const std::string& place, QueryBlock& block);

  const sparse_engine::Model& model_;
  std::optional<text::Featurizer> featurizer_;
  std::optional<data::LineBag> bag_;
  std::vector<std::string_view> items_;
  std::vector<std::uint32_t> numbers_;
  text::FeaturizerScratch scratch_;
  std::unordered_map<std::string_view, std::uint32_t> names_;  // views into the model
  UnknownFeatures unknown_;
  std::uint64_t unknown_of_last_ = 0;
  std::vector<std::string> ignored_of_last_;
};

}  // namespace gossamer::commands
