// SPDX-License-Identifier: Apache-2.0
//
// Queries as the network sees them on their way to the members that have its parts
// (docs/protocols/sparse-serving.md): u32 begin[queries + 1], u32 feature[n], f32 value[n].
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

[[nodiscard]] Slice write_query_rows(const data::SparseRows& queries);
// Nothing for bytes that are not so many queries of a network with so many features.
[[nodiscard]] std::optional<QueryRows> read_query_rows(const Slices& bytes, std::size_t queries,
                                                       std::size_t features);

}  // namespace gossamer::engine
