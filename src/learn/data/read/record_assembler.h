// SPDX-License-Identifier: Apache-2.0
//
// RecordAssembler: makes Records (rows.h) from JSONL lines. Names become numbers in the order of first
// appearance, numbers stay; both are sorted and distinct. One import uses either names or numbers for labels,
// and either names or indices for features. A line that mixes them is kBadData without `where`, for the
// reader to complete and count.
//
// Owner: one; thread rule: the owner. Views live until the next call of the same function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "learn/data/name_table.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/rows.h"

namespace gossamer::data {

class RecordAssembler {
 public:
  RecordAssembler() = default;
  // Starts from known names (moved in); an empty table leaves open whether names or numbers come.
  RecordAssembler(NameTable label_names, NameTable feature_names);

  // The labels of a line as numbers.
  [[nodiscard]] Result<std::span<const std::uint32_t>> labels(const JsonlRecord& record);
  // The features of a line that has some; a text line is kBadData.
  [[nodiscard]] Result<SparseRow> features(const JsonlRecord& record);

  // Empty when numbers are used.
  [[nodiscard]] const NameTable& label_names() const { return label_names_; }
  [[nodiscard]] const NameTable& feature_names() const { return feature_names_; }

 private:
  enum class Naming { kNames, kNumbers };

  std::optional<Naming> label_naming_;
  std::optional<Naming> feature_naming_;
  NameTable label_names_;
  NameTable feature_names_;
  std::vector<std::uint32_t> label_;
  std::vector<std::pair<std::uint32_t, float>> pairs_;
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
};

}  // namespace gossamer::data
