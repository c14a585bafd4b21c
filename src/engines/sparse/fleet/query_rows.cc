// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/query_rows.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace gossamer::engine {
namespace {

template <class T>
void append(std::span<const T> values, std::vector<std::byte>& out) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
std::vector<T> take(SliceReader& reader, std::size_t count) {
  std::vector<T> values(count);
  copy_front(reader.take(count * sizeof(T)), std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

Slice write_query_rows(const data::SparseRows& queries) {
  std::vector<std::byte> bytes;
  append(queries.begin, bytes);
  append(queries.index, bytes);
  append(queries.value, bytes);
  return Slice::of(std::move(bytes));
}

std::optional<QueryRows> read_query_rows(const Slices& bytes, std::size_t queries, std::size_t features) {
  SliceReader reader(bytes);
  QueryRows rows;
  if (reader.left() < (queries + 1) * sizeof(std::uint32_t)) return std::nullopt;
  rows.begin = take<std::uint32_t>(reader, queries + 1);
  const std::uint64_t entries = rows.begin.back();
  const bool fits = rows.begin.front() == 0 && std::ranges::is_sorted(rows.begin) &&
                    reader.left() == entries * (sizeof(std::uint32_t) + sizeof(float));
  if (!fits) return std::nullopt;
  rows.index = take<std::uint32_t>(reader, entries);
  rows.value = take<float>(reader, entries);
  const auto beyond = [features](std::uint32_t one) { return one >= features; };
  if (std::ranges::any_of(rows.index, beyond)) return std::nullopt;
  return rows;
}

}  // namespace gossamer::engine
