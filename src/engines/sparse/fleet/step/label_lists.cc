// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/label_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/payload_values.h"

namespace gossamer::sparse_engine {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

Error no_label_list(std::string got) {
  return {.kind = ErrorKind::kBadData,
          .where = "evaluation",
          .what = "a member gave a list of labels that none can have",
          .got = std::move(got),
          .expected = "labels of rows that it holds, with finite scores",
          .fix = "look whether all members run the same version"};
}

}  // namespace

std::size_t list_limit(const sparse::HeldRows& rows, std::size_t wished) {
  std::size_t held = 0;
  for (std::size_t shard = 0; shard < rows.shards() && held < wished; ++shard) {
    const host::Range range = rows.rows_of(shard);
    if (rows.holds(shard)) held += range.end - range.begin;
  }
  return std::min(held, wished);
}

void append_list(std::span<const Scored> list, std::size_t k, std::vector<std::byte>& out) {
  CHECK(list.size() <= k, list.size(), k);
  std::size_t left = k;
  const auto append = [&](const Scored& one) {
    append_values(std::span(&one, 1), out);
    --left;
  };
  for (const Scored& one : list) {
    if (std::isfinite(one.score)) append(one);
  }
  while (left > 0) append({.id = 0, .score = kNoScore});
}

Result<void> add_lists(const Slices& bytes, std::size_t k, const sparse::HeldRows& rows,
                       const sparse::RowOrder& order, std::span<std::vector<Scored>> lists) {
  std::vector<Scored> given(lists.size() * k);
  CHECK(total_bytes(bytes) == std::span(given).size_bytes(), total_bytes(bytes), given.size());
  copy_front(bytes, std::as_writable_bytes(std::span(given)));
  std::size_t labels = 0;
  if (rows.shards() > 0) labels = rows.rows_of(rows.shards() - 1).end;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Scored& one = given[i];
    if (one.score == kNoScore) continue;
    if (!std::isfinite(one.score)) return no_label_list(fmt::format("a score of {}", one.score));
    if (one.id >= labels) return no_label_list(fmt::format("label {} of {}", one.id, labels));
    if (!rows.contains(order.row_of(one.id)))
      return no_label_list(fmt::format("label {} of another", one.id));
    lists[i / k].push_back(one);
  }
  return {};
}

void rank_list(std::size_t k, std::vector<Scored>& list) {
  if (k < list.size() && k > 0) keep_best(list, k);
  std::ranges::sort(list, ranks_before);
}

}  // namespace gossamer::sparse_engine
