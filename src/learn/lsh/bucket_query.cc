// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/bucket_query.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace gossamer::lsh {

BucketQuery::BucketQuery(const Tables& tables, const BucketQueryOptions& options)
    : tables_(tables),
      options_(options),
      hashing_(tables.family().shape()),
      codes_(tables.tables()),
      keys_(tables.tables()),
      count_((tables.rows() + kGroup - 1) / kGroup * kGroup),
      touched_((tables.rows() / kGroup + 8) / 8 * 8),
      bucket_(tables.rows()),
      with_(tables.tables() + 2),
      next_(tables.tables() + 1),
      order_(tables.tables()),
      out_(std::min(options.limit, tables.rows())) {
  CHECK(tables.tables() <= UINT16_MAX, tables.tables());
  CHECK(options.limit >= 1 && options.min_tables >= 1 && options.cap_rows >= 1, options.limit,
        options.min_tables, options.cap_rows);
}

std::span<const Candidate> BucketQuery::find(std::span<const float> vector) {
  tables_.family().hash_dense(vector, hashing_, codes_);
  return find_codes(codes_);
}

std::span<const Candidate> BucketQuery::find(const data::SparseRow& vector) {
  tables_.family().hash(vector, hashing_, codes_);
  return find_codes(codes_);
}

std::span<const Candidate> BucketQuery::find_codes(std::span<const std::uint32_t> codes) {
  CHECK(codes.size() == keys_.size(), codes.size(), keys_.size());
  std::ranges::transform(codes, keys_.begin(), [&](std::uint32_t code) { return tables_.key_of(code); });
  std::ranges::fill(with_, 0U);
  if (options_.cap == BucketCap::kNone) {
    visit_all();
  } else {
    visit_capped();
  }
  return ranked();
}

std::span<const Candidate> BucketQuery::sample_codes(std::span<const std::uint32_t> codes, Rng& order) {
  CHECK(codes.size() == keys_.size(), codes.size(), keys_.size());
  std::ranges::transform(codes, keys_.begin(), [&](std::uint32_t code) { return tables_.key_of(code); });
  std::iota(order_.begin(), order_.end(), 0U);
  std::size_t found = 0;
  for (std::size_t i = 0; i < order_.size() && found < out_.size(); ++i) {
    std::swap(order_[i], order_[i + order.below(order_.size() - i)]);
    for (const std::uint32_t row : capped(order_[i])) {
      if (found == out_.size()) break;
      if (count_[row]++ == 0) out_[found++] = {.row = row, .tables = 1};
    }
  }
  const auto answer = std::span(out_).first(found);
  for (Candidate& candidate : answer)
    candidate.tables = std::exchange(count_[candidate.row], std::uint16_t{0});
  return answer;
}

std::size_t BucketQuery::visited() const {
  return std::accumulate(with_.begin(), with_.end(), std::size_t{0});
}

// Visits one row block after the other, so that the counts in use fit the second-level cache. What one block
// needs is fetched while the one before it is visited.
void BucketQuery::visit_all() {
  std::uint16_t* const count = count_.data();
  std::uint32_t* const with = with_.data();
  std::uint8_t* const touched = touched_.data();
  const std::span<const std::uint32_t> keys = keys_;
  const auto fetch = [&](std::size_t block) {
    for (std::size_t t = 0; t < keys.size() && block < tables_.blocks(); ++t) {
      tables_.prefetch_bucket(block, t, keys[t]);
    }
  };
  fetch(0);
  for (std::size_t block = 0; block < tables_.blocks(); ++block) {
    fetch(block + 1);
    for (std::size_t t = 0; t < keys.size(); ++t) tables_.prefetch_rows(block, t, keys[t]);
    for (std::size_t t = 0; t < keys.size(); ++t) {
      tables_.visit(block, t, keys[t], [&](std::size_t row) {
        ++with[++count[row]];
        touched[row / kGroup] = 1;
      });
    }
  }
}

void BucketQuery::visit_capped() {
  for (std::size_t t = 0; t < keys_.size(); ++t) {
    for (const std::uint32_t row : capped(t)) {
      ++with_[++count_[row]];
      touched_[row / kGroup] = 1;
    }
  }
}

std::span<const std::uint32_t> BucketQuery::capped(std::size_t table) {
  const std::uint32_t key = keys_[table];
  std::size_t size = 0;
  for (std::size_t block = 0; block < tables_.blocks(); ++block) {
    tables_.visit(block, table, key,
                  [&](std::size_t row) { bucket_[size++] = static_cast<std::uint32_t>(row); });
  }
  const auto bucket = bucket_.span().first(size);
  // A block's overlay comes behind its base.
  if (!std::ranges::is_sorted(bucket)) std::ranges::sort(bucket);
  if (options_.cap == BucketCap::kNone || size <= options_.cap_rows) return bucket;
  if (options_.cap == BucketCap::kFifo) return bucket.last(options_.cap_rows);
  Rng rng(options_.seed, Purpose::kBucketSample, key, static_cast<std::uint32_t>(table));
  for (std::size_t i = 0; i < options_.cap_rows; ++i) {
    std::swap(bucket[i], bucket[i + ((std::uint64_t{rng.next_u32()} * (size - i)) >> 32)]);
  }
  return bucket.first(options_.cap_rows);
}

// Gives the group's rows with at least this support their places, and clears the counts. Few groups have such
// a row.
void BucketQuery::rank_group(std::size_t group, std::size_t least) {
  std::uint16_t* const count = &count_[group * kGroup];
  const auto wanted = static_cast<std::uint16_t>(least);
  std::uint16_t any = 0;
  for (std::size_t i = 0; i < kGroup; ++i) any |= count[i] >= wanted ? 1 : 0;
  for (std::size_t i = 0; i < kGroup && any != 0; ++i) {
    if (count[i] < wanted) continue;
    const std::size_t at = next_[count[i]]++;
    if (at < out_.size())
      out_[at] = {.row = static_cast<std::uint32_t>(group * kGroup + i), .tables = count[i]};
  }
  std::fill_n(count, kGroup, std::uint16_t{0});
}

// A counting sort, by support, of the rows that will be in the answer. Groups come in rising order, and so do
// rows of equal support.
std::span<const Candidate> BucketQuery::ranked() {
  std::size_t least = tables_.tables() + 1;
  while (least > options_.min_tables && with_[least] < out_.size()) --least;
  for (std::size_t c = 0; c < next_.size(); ++c) next_[c] = with_[c + 1];
  for (std::size_t first = 0; first < touched_.size(); first += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, &touched_[first], 8);
    for (; eight != 0; eight &= eight - 1) {
      rank_group(first + static_cast<std::size_t>(std::countr_zero(eight)) / 8, least);
    }
    std::memset(&touched_[first], 0, 8);
  }
  return std::span(out_).first(std::min<std::size_t>(with_[least], out_.size()));
}

}  // namespace gossamer::lsh
