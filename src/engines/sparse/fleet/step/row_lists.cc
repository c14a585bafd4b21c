// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/row_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/payload_values.h"
#include "engines/sparse/model/instance_part.h"

namespace gossamer::sparse_engine {
namespace {

constexpr float kNoCosine = -std::numeric_limits<float>::infinity();

float rank_of(const FoundRow& one, RankedBy by) { return by == RankedBy::kInput ? one.input : one.hidden; }

Error no_row_list(std::string got) {
  return {.kind = ErrorKind::kBadData,
          .where = "serving",
          .what = "a member gave a list of training records that none can have",
          .got = std::move(got),
          .expected = "records that it holds, with finite cosines",
          .fix = "look whether all members run the same version"};
}

}  // namespace

void append_rows(std::span<const FoundRow> list, std::size_t k, RankedBy by, std::vector<std::byte>& out) {
  CHECK(list.size() <= k, list.size(), k);
  std::size_t left = k;
  const auto append = [&](const FoundRow& one) {
    append_values(std::span(&one, 1), out);
    --left;
  };
  for (const FoundRow& one : list) {
    if (std::isfinite(rank_of(one, by))) append(one);
  }
  while (left > 0) append({.row = 0, .input = kNoCosine, .hidden = kNoCosine});
}

Result<void> add_rows(const Slices& bytes, std::size_t k, RankedBy by, const RowShare& share,
                      std::span<std::vector<FoundRow>> lists) {
  std::vector<FoundRow> given(lists.size() * k);
  CHECK(total_bytes(bytes) == std::span(given).size_bytes(), total_bytes(bytes), given.size());
  copy_front(bytes, std::as_writable_bytes(std::span(given)));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const FoundRow& one = given[i];
    const float rank = rank_of(one, by);
    if (rank == kNoCosine) continue;
    if (!std::isfinite(rank)) return no_row_list(fmt::format("a cosine of {}", rank));
    if (one.row >= share.rows) return no_row_list(fmt::format("record {} of {}", one.row, share.rows));
    if (!holds_instance(share.rows, share.held, one.row))
      return no_row_list(fmt::format("record {} of another", one.row));
    lists[i / k].push_back(one);
  }
  return {};
}

void rank_rows(std::size_t k, RankedBy by, std::vector<FoundRow>& list) {
  std::ranges::sort(list, [by](const FoundRow& a, const FoundRow& b) {
    return ranks_before({a.row, rank_of(a, by)}, {b.row, rank_of(b, by)});
  });
  list.resize(std::min(list.size(), k));
}

}  // namespace gossamer::sparse_engine
