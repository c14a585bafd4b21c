// SPDX-License-Identifier: Apache-2.0
//
// Queries and sets of labels on their way between a lead and the members that have parts of its model
// (docs/protocols/sparse-serving.md). Queries are as the network sees them, or as training records are
// compared. A set of labels belongs to one of several things:
//
//   queries   u32 begin[queries + 1], u32 feature[n], f32 value[n]
//   labels    u32 begin[things + 1], u32 label[n], which rise in each thing
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/slice.h"
#include "learn/data/rows.h"

namespace gossamer::sparse_engine {

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
// Nothing if the bytes are not `queries` queries of a network with `features` features.
[[nodiscard]] std::optional<QueryRows> read_query_rows(const Slices& bytes, std::size_t queries,
                                                       std::size_t features);

// The same, from the front of the unread bytes. Nothing if they do not begin so.
[[nodiscard]] std::optional<QueryRows> take_query_rows(SliceReader& reader, std::size_t queries,
                                                       std::size_t features);

[[nodiscard]] Slice write_label_sets(const data::LabelSets& sets);
// Nothing if the bytes are not exactly `sets` sets of labels below `labels`.
[[nodiscard]] std::optional<OwnedLabelSets> read_label_sets(SliceReader& reader, std::size_t sets,
                                                            std::size_t labels);

}  // namespace gossamer::sparse_engine
