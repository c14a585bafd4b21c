// SPDX-License-Identifier: Apache-2.0
//
// Queries, as the network sees them or as training records are compared, and labels of each of several
// things, on their way between a lead and the members that have parts of its model
// (docs/protocols/sparse-serving.md):
//
//   queries   u32 begin[queries + 1], u32 feature[n], f32 value[n]
//   labels    u32 begin[things + 1], u32 label[n], those of a thing rising
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/slice.h"
#include "learn/data/rows.h"

namespace gossamer::engine {

struct QueryRows {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> index;
  std::vector<float> value;

  [[nodiscard]] data::SparseRows view() const { return {begin, index, value}; }
};

struct OwnedLabelSets {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> label;

  [[nodiscard]] data::LabelSets view() const { return {begin, label}; }
};

[[nodiscard]] Slice write_query_rows(const data::SparseRows& queries);
// Nothing for bytes that are not so many queries of a network with so many features.
[[nodiscard]] std::optional<QueryRows> read_query_rows(const Slices& bytes, std::size_t queries,
                                                       std::size_t features);

// The same, from the front of what is left; nothing where it does not begin so.
[[nodiscard]] std::optional<QueryRows> take_query_rows(SliceReader& reader, std::size_t queries,
                                                       std::size_t features);

[[nodiscard]] Slice write_label_sets(const data::LabelSets& sets);
// Nothing for bytes that are not so many sets of labels below `labels`, or not only that.
[[nodiscard]] std::optional<OwnedLabelSets> read_label_sets(SliceReader& reader, std::size_t sets,
                                                            std::size_t labels);

}  // namespace gossamer::engine
