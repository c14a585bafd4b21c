// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/query_rows.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engines/sparse/fleet/step/payload_values.h"

namespace gossamer::sparse_engine {
Slice write_query_rows(const data::SparseRows& queries) {
  std::vector<std::byte> bytes;
  append_values(queries.begin, bytes);
  append_values(queries.index, bytes);
  append_values(queries.value, bytes);
  return Slice::of(std::move(bytes));
}

std::optional<QueryRows> take_query_rows(SliceReader& reader, std::size_t queries, std::size_t features) {
  QueryRows rows;
  if (reader.left() < (queries + 1) * sizeof(std::uint32_t)) return std::nullopt;
  rows.begin = take_values<std::uint32_t>(reader, queries + 1);
  const std::uint64_t entries = rows.begin.back();
  const bool fits = rows.begin.front() == 0 && std::ranges::is_sorted(rows.begin) &&
                    reader.left() >= entries * (sizeof(std::uint32_t) + sizeof(float));
  if (!fits) return std::nullopt;
  rows.index = take_values<std::uint32_t>(reader, entries);
  rows.value = take_values<float>(reader, entries);
  const auto beyond = [features](std::uint32_t one) { return one >= features; };
  if (std::ranges::any_of(rows.index, beyond)) return std::nullopt;
  return rows;
}

std::optional<QueryRows> read_query_rows(const Slices& bytes, std::size_t queries, std::size_t features) {
  SliceReader reader(bytes);
  auto rows = take_query_rows(reader, queries, features);
  return reader.left() == 0 ? rows : std::nullopt;
}

Slice write_label_sets(const data::LabelSets& sets) {
  std::vector<std::byte> bytes;
  append_values(sets.begin, bytes);
  append_values(sets.label, bytes);
  return Slice::of(std::move(bytes));
}

std::optional<OwnedLabelSets> read_label_sets(SliceReader& reader, std::size_t sets, std::size_t labels) {
  OwnedLabelSets read;
  if (reader.left() < (sets + 1) * sizeof(std::uint32_t)) return std::nullopt;
  read.begin = take_values<std::uint32_t>(reader, sets + 1);
  const std::uint64_t entries = read.begin.back();
  const bool fits = read.begin.front() == 0 && std::ranges::is_sorted(read.begin) &&
                    reader.left() == entries * sizeof(std::uint32_t);
  if (!fits) return std::nullopt;
  read.label = take_values<std::uint32_t>(reader, entries);
  for (std::size_t i = 0; i < sets; ++i) {
    const auto set = read.view().row(i);
    const auto falls = [](std::uint32_t a, std::uint32_t b) { return a >= b; };
    if (std::ranges::adjacent_find(set, falls) != set.end() || (!set.empty() && set.back() >= labels))
      return std::nullopt;
  }
  return read;
}

}  // namespace gossamer::sparse_engine
