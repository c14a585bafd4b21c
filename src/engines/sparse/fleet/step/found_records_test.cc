// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/found_records.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engines/sparse/fleet/step/layout.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

using simulation::TinyProblem;
using testing::Test;

constexpr std::size_t kQueries = 3;

// 150 labels in shards of 4.
struct FoundRecords : Test {
  const TinyProblem problem{
      {.hashed = sparse::HashNegativeOptions{.queries = kQueries, .found = std::size_t{3} * 10}}};
  const std::shared_ptr<const FleetJob> job = problem.make_job();
  const sparse::HeldRows all_rows{job->shape.network.labels, job->shape.shard_shift};

  [[nodiscard]] sparse::NetworkPart with(std::size_t shards) const {
    std::set<std::size_t> first;
    for (std::size_t shard = 0; shard < shards; ++shard) first.insert(shard);
    return with_shards(no_part(job->shape), job->shape, first);
  }
};

// Claim: a member looks for its fraction of the rows that the run wants, rounded up. All together never look
// for more than there is room for.
TEST_F(FoundRecords, LimitsAreShares) {
  EXPECT_EQ(found_limit(*job, with(0)), 0u);
  EXPECT_EQ(found_limit(*job, with(1)), 1u);
  EXPECT_EQ(found_limit(*job, with(19)), 6u);  // 10 * 76 / 150
  EXPECT_EQ(found_limit(*job, with(38)), 10u);
  EXPECT_EQ(hash_options(*job, with(19)).found, 6 * kQueries);
  std::size_t all = 0;
  for (std::size_t shard = 0; shard < 38; ++shard)
    all += found_limit(*job, with_shards(no_part(job->shape), job->shape, {shard}));
  EXPECT_EQ(all, 38u);
  EXPECT_LE(all, most_found(*job));
  const auto without = TinyProblem({}).make_job();
  EXPECT_EQ(found_limit(*without, with(38)), 0u);
  EXPECT_EQ(found_bytes(*without, most_found(*without)), 0u);
}

// Claim: the rows that several members found come together by sample, in the order of members.
TEST_F(FoundRecords, ComeTogether) {
  sparse::FoundRows first(sparse::HashSets::kShared, kQueries, 6);
  first.add(0, 149);
  first.add(2, 7);
  first.add(2, 5);
  sparse::FoundRows second(sparse::HashSets::kShared, kQueries, 4);
  second.add(2, 77);
  sparse::FoundRows all = nothing_found(*job);
  for (const auto& [found, limit] : {std::pair(&first, 6U), std::pair(&second, 4U)}) {
    const Slices bytes = write_found(*found, limit);
    ASSERT_EQ(total_bytes(bytes), found_bytes(*job, limit));
    ASSERT_TRUE(add_found(*job, bytes, {limit, all_rows}, all).ok());
  }
  EXPECT_EQ(std::vector(all.of(0).begin(), all.of(0).end()), (std::vector<std::uint32_t>{149}));
  EXPECT_TRUE(all.of(1).empty());
  EXPECT_EQ(std::vector(all.of(2).begin(), all.of(2).end()), (std::vector<std::uint32_t>{7, 5, 77}));
  EXPECT_EQ(all.asking(2), 2u);
  EXPECT_EQ(all.asking(24), kQueries);
}

// Claim: a number that is no row is refused, and so are more rows than there can be.
TEST_F(FoundRecords, RefusesWhatCannotBe) {
  sparse::FoundRows found(sparse::HashSets::kShared, kQueries, 6);
  found.add(1, 20);
  const std::string good = joined(write_found(found, 6));
  for (const auto& [at, value] : {std::pair(0, 7), std::pair(7, 8), std::pair(8, 150)}) {
    std::string bad = good;
    const auto number = static_cast<std::uint32_t>(value);
    std::memcpy(bad.data() + sizeof(number) * static_cast<std::size_t>(at), &number, sizeof(number));
    sparse::FoundRows all = nothing_found(*job);
    const auto added = add_found(*job, {Slice::of(bad)}, {6, all_rows}, all);
    ASSERT_FALSE(added.ok()) << at;
    EXPECT_EQ(added.error().kind, ErrorKind::kBadData);
  }
  // Each is within the limit. Together they are more than members can have found.
  sparse::FoundRows all = nothing_found(*job);
  sparse::FoundRows full(sparse::HashSets::kShared, kQueries, most_found(*job));
  for (std::uint32_t row = 0; row < most_found(*job); ++row) full.add(0, row);
  const Slices bytes = write_found(full, most_found(*job));
  EXPECT_TRUE(add_found(*job, bytes, {most_found(*job), all_rows}, all).ok());
  EXPECT_FALSE(add_found(*job, bytes, {most_found(*job), all_rows}, all).ok());
}

// Claim: rows that their finder does not hold are refused.
TEST_F(FoundRecords, RefusesRowsOfAnother) {
  sparse::FoundRows found(sparse::HashSets::kShared, kQueries, 6);
  found.add(1, 4);  // of the second shard
  const Slices bytes = write_found(found, 6);
  for (const std::size_t shard : {0U, 1U}) {
    const sparse::NetworkPart held = with_shards(no_part(job->shape), job->shape, {shard});
    sparse::FoundRows all = nothing_found(*job);
    EXPECT_EQ(add_found(*job, bytes, {6, held.rows}, all).ok(), shard == 1) << shard;
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
