// SPDX-License-Identifier: Apache-2.0
//
// Schema: how much there is to learn from, and the names of features and labels. Dataset: a Schema with
// records by position, whatever holds them. It is the seam between readers and learners. Implementations are
// the memory-mapped cache (cached_dataset.h), the records that a hold-out keeps (hold_out.h) and small
// in-memory sets.
//
// Thread rule: immutable after construction, any thread. Owner: the code that opened it; records are views
// into it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "learn/data/rows.h"

namespace gossamer::data {

class Schema {
 public:
  Schema() = default;
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;
  virtual ~Schema() = default;

  // The number of records; where records are made as they are needed, the samples of one pass.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // Every feature index is below features(), every label below labels(). Both at most 2^32 - 1.
  [[nodiscard]] virtual std::uint32_t features() const = 0;
  [[nodiscard]] virtual std::uint32_t labels() const = 0;
  // Sums over all records: of their features, and of their labels. Expected values where records are made as
  // needed.
  [[nodiscard]] virtual std::uint64_t feature_entries() const = 0;
  [[nodiscard]] virtual std::uint64_t label_entries() const = 0;
  // Names, empty views where the source had only numbers. Requires the index in range.
  [[nodiscard]] virtual std::string_view label_name(std::uint32_t label) const = 0;
  [[nodiscard]] virtual std::string_view feature_name(std::uint32_t feature) const = 0;
  [[nodiscard]] virtual bool has_label_names() const = 0;
  [[nodiscard]] virtual bool has_feature_names() const = 0;
};

class Dataset : public Schema {
 public:
  // Requires i < size().
  [[nodiscard]] virtual Record record(RecordIndex i) const = 0;
};

}  // namespace gossamer::data
