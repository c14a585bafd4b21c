// SPDX-License-Identifier: Apache-2.0
//
// CollectedRecord: owned copies of what readers and datasets hand out, for tests to compare. Only tests
// include it. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "learn/data/dataset.h"
#include "learn/data/read/reading.h"
#include "learn/data/rows.h"

namespace gossamer::data {

struct CollectedRecord {
  std::vector<std::uint32_t> index = {};
  std::vector<float> value = {};
  std::vector<std::uint32_t> labels = {};

  bool operator==(const CollectedRecord&) const = default;
  [[nodiscard]] Record view() const { return {.features = {index, value}, .labels = labels}; }
};

[[nodiscard]] inline CollectedRecord collect(const Record& record) {
  const auto& [index, value] = record.features;
  return {{index.begin(), index.end()},
          {value.begin(), value.end()},
          {record.labels.begin(), record.labels.end()}};
}

[[nodiscard]] inline std::vector<CollectedRecord> collect(const Dataset& dataset) {
  std::vector<CollectedRecord> all;
  all.reserve(dataset.size());
  for (std::uint64_t i = 0; i < dataset.size(); ++i) all.push_back(collect(dataset.record(RecordIndex(i))));
  return all;
}

inline std::ostream& operator<<(std::ostream& out, const CollectedRecord& record) {
  for (const std::uint32_t label : record.labels) out << label << ',';
  for (std::size_t i = 0; i < record.index.size(); ++i)
    out << ' ' << record.index[i] << ':' << record.value[i];
  return out;
}

}  // namespace gossamer::data
