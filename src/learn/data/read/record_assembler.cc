// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/record_assembler.h"

#include <algorithm>
#include <string>

namespace gossamer::data {
namespace {

Error mixed(std::string what, bool names_now) {
  return Error{.kind = ErrorKind::kBadData,
               .what = std::move(what),
               .got = names_now ? "names" : "numbers",
               .expected = names_now ? "numbers, as in the lines before" : "names, as in the lines before"};
}

}  // namespace

RecordAssembler::RecordAssembler(NameTable label_names, NameTable feature_names)
    : label_names_(std::move(label_names)), feature_names_(std::move(feature_names)) {
  if (label_names_.size() > 0) label_naming_ = Naming::kNames;
  if (feature_names_.size() > 0) feature_naming_ = Naming::kNames;
}

Result<std::span<const std::uint32_t>> RecordAssembler::labels(const JsonlRecord& record) {
  if (record.label_name.empty() && record.label_number.empty()) return record.label_number;
  const Naming naming = record.label_name.empty() ? Naming::kNumbers : Naming::kNames;
  if (label_naming_.value_or(naming) != naming) {
    return mixed("the file mixes label names and label numbers", naming == Naming::kNames);
  }
  label_naming_ = naming;
  if (naming == Naming::kNumbers) return record.label_number;
  label_.clear();
  for (const std::string_view name : record.label_name) label_.push_back(label_names_.id(name));
  std::sort(label_.begin(), label_.end());
  label_.erase(std::unique(label_.begin(), label_.end()), label_.end());
  return std::span<const std::uint32_t>(label_);
}

Result<SparseRow> RecordAssembler::features(const JsonlRecord& record) {
  if (record.kind == JsonlRecord::Kind::kText) {
    return Error{.kind = ErrorKind::kBadData,
                 .what = "a record has text where features are needed",
                 .got = "\"text\"",
                 .expected = "\"features\""};
  }
  if (record.value.empty()) return SparseRow{};
  const Naming naming = record.kind == JsonlRecord::Kind::kFeatures ? Naming::kNumbers : Naming::kNames;
  if (feature_naming_.value_or(naming) != naming) {
    return mixed("the file mixes feature names and feature indices", naming == Naming::kNames);
  }
  feature_naming_ = naming;
  if (naming == Naming::kNumbers) return SparseRow{record.index, record.value};
  pairs_.clear();
  for (std::size_t i = 0; i < record.name.size(); ++i) {
    pairs_.emplace_back(feature_names_.id(record.name[i]), record.value[i]);
  }
  std::sort(pairs_.begin(), pairs_.end());
  index_.clear();
  value_.clear();
  for (const auto& [index, value] : pairs_) {
    index_.push_back(index);
    value_.push_back(value);
  }
  return SparseRow{index_, value_};
}

}  // namespace gossamer::data
