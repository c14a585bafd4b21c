// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/held_out.h"

#include <algorithm>
#include <vector>

namespace gossamer::sparse_engine {
namespace {

constexpr std::size_t kRankedAtOnce = 512;

}  // namespace

bool RankedRecord::correct(std::size_t c) const {
  return std::ranges::binary_search(record.labels, block.row(query)[c].id);
}

Result<void> rank_held_out(Predictor& predictor, const HeldOutRecords& records, std::size_t top_k,
                           PredictionBlock& block, FunctionRef<void(const RankedRecord&)> take) {
  std::vector<std::uint64_t> wanted;
  for (std::uint64_t i = 0; i < records.hold_out.held(); ++i) {
    if (!records.half || half_of_held(i) == *records.half) wanted.push_back(i);
  }
  const auto record = [&records](std::uint64_t i) {
    return records.dataset.record(records.hold_out.held_record(i));
  };
  for (std::size_t first = 0; first < wanted.size(); first += kRankedAtOnce) {
    const std::size_t count = std::min(kRankedAtOnce, wanted.size() - first);
    std::vector<std::uint32_t> begin = {0};
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    for (std::size_t q = 0; q < count; ++q) {
      const data::SparseRow row = record(wanted[first + q]).features;
      index.insert(index.end(), row.index.begin(), row.index.end());
      value.insert(value.end(), row.value.begin(), row.value.end());
      begin.push_back(static_cast<std::uint32_t>(index.size()));
    }
    if (auto done = predictor.predict({begin, index, value}, top_k, block); !done.ok()) return done.error();
    for (std::size_t q = 0; q < count; ++q) {
      take({.record = record(wanted[first + q]), .held = wanted[first + q], .block = block, .query = q});
    }
  }
  return {};
}

}  // namespace gossamer::sparse_engine
