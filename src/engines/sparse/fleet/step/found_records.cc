// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/found_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace gossamer::sparse_engine {
namespace {

// Rows that a sample may find on one node that holds everything.
std::size_t wanted(const FleetJob& job) { return sparse::found_limit(*job.hashed); }

std::size_t rows_of(const sparse::NetworkPart& part) {
  std::size_t rows = 0;
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    const host::Range range = part.rows.rows_of(shard);
    if (part.rows.holds(shard)) rows += range.end - range.begin;
  }
  return rows;
}

Error no_find(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = "a step",
          .what = "a member says that its hash tables found what they cannot have",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether all nodes run the same version"};
}

}  // namespace

std::size_t found_limit(const FleetJob& job, const sparse::NetworkPart& part) {
  if (!job.hashed) return 0;
  const std::size_t labels = job.shape.network.labels;
  return (wanted(job) * rows_of(part) + labels - 1) / labels;
}

// Each member's part is rounded up, and a member with a part holds at least one shard.
std::size_t most_found(const FleetJob& job) { return job.hashed ? wanted(job) + job.shape.shards() : 0; }

sparse::HashNegativeOptions hash_options(const FleetJob& job, const sparse::NetworkPart& part) {
  sparse::HashNegativeOptions options = *job.hashed;
  options.found = found_limit(job, part) * options.queries;
  return options;
}

sparse::FoundRows nothing_found(const FleetJob& job) {
  return {job.hashed->sets, job.hashed->queries, most_found(job)};
}

std::uint64_t found_bytes(const FleetJob& job, std::size_t limit) {
  return limit == 0 ? 0 : job.hashed->queries * (1 + limit) * sizeof(std::uint32_t);
}

Slices write_found(const sparse::FoundRows& found, std::size_t limit) {
  if (limit == 0) return {};
  std::vector<std::uint32_t> numbers(found.count.size() * (1 + limit));
  for (std::size_t sample = 0; sample < found.count.size(); ++sample) {
    const std::span<const std::uint32_t> rows = found.of(sample);
    CHECK(rows.size() <= limit, rows.size(), limit);
    numbers[sample * (1 + limit)] = found.count[sample];
    std::ranges::copy(rows, numbers.begin() + static_cast<std::ptrdiff_t>(sample * (1 + limit) + 1));
  }
  return {Slice::copy_of(std::as_bytes(std::span(numbers)))};
}

Result<void> add_found(const FleetJob& job, const Slices& bytes, const RowFinder& by,
                       sparse::FoundRows& found) {
  const std::size_t limit = by.limit;
  if (limit == 0) return {};
  std::vector<std::uint32_t> numbers(found.count.size() * (1 + limit));
  copy_front(bytes, std::as_writable_bytes(std::span(numbers)));
  for (std::size_t sample = 0; sample < found.count.size(); ++sample) {
    const std::span<const std::uint32_t> one = std::span(numbers).subspan(sample * (1 + limit), 1 + limit);
    if (one.front() > limit || found.count[sample] + one.front() > found.limit)
      return no_find(fmt::format("{} rows of a sample", one.front()), fmt::format("at most {}", limit));
    for (const std::uint32_t row : one.subspan(1, one.front())) {
      const std::size_t rows = job.shape.network.labels;
      if (row >= rows || !by.held.contains(row))
        return no_find(fmt::format("row {}", row), fmt::format("a row that it holds, of {}", rows));
      found.add(sample, row);
    }
  }
  return {};
}

}  // namespace gossamer::sparse_engine
