// SPDX-License-Identifier: Apache-2.0
//
// Schema: how much there is to learn from, and the names of features and labels. Dataset: a Schema with
// records by position, whatever holds them. The seam between readers and learners; implementations: the
// memory-mapped cache (learn/data/cache.h) and small in-memory sets of tests.
//
// Thread rule: immutable after construction, any thread. Owner: whoever opened it; records are views into it.
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

  // Records; samples of an epoch where records are made as they are needed.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // Every feature index is below features(), every label below labels(). Both at most 2^32 - 1.
  [[nodiscard]] virtual std::uint32_t features() const = 0;
  [[nodiscard]] virtual std::uint32_t labels() const = 0;
  // Sum over all records of their features and of their labels; expected where they are made as needed.
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
