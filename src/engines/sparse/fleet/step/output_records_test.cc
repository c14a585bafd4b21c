// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/output_records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/fleet/step/layout.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

using simulation::TinyProblem;
using sparse::PartitionShare;
using sparse::RowScores;
using testing::Test;

constexpr std::size_t kSamples = 3;

// 150 labels in shards of 4.
struct OutputRecords : Test {
  const TinyProblem problem{{.samples = kSamples, .exchange = ExchangeKind::kDslide}};
  const std::shared_ptr<const FleetJob> job = problem.make_job();

  [[nodiscard]] sparse::NetworkPart with(const std::set<std::size_t>& shards) const {
    return with_shards(no_part(job->shape), job->shape, shards);
  }
};

// Scores of rows 4, 5 and 7, by two workers. The second sample scores the last row alone, the third nothing.
std::vector<RowScores> some_scores() {
  std::vector<RowScores> by_worker(2);
  by_worker[0].add(4, std::vector<float>{1, sparse::kNotScored, sparse::kNotScored}, 0.5F);
  by_worker[0].add(5, std::vector<float>{-2, sparse::kNotScored, sparse::kNotScored}, 0);
  by_worker[1].add(7, std::vector<float>{3, 90, sparse::kNotScored}, -1);
  return by_worker;
}

// Claim: the bytes are as the page says, 8 a score and 4 a sample. There are at most as many scores as
// samples times rows.
TEST_F(OutputRecords, SizesFollowFromScores) {
  EXPECT_EQ(output_bytes(*job, 0), 4 * kSamples);
  EXPECT_EQ(output_bytes(*job, 7), 4 * kSamples + std::size_t{7} * 8);
  EXPECT_EQ(most_scores(*job, with({})), 0U);
  EXPECT_EQ(most_scores(*job, with({0, 5})), 8 * kSamples);
  EXPECT_EQ(most_scores(*job, with({37})), 2 * kSamples);  // the last shard is short
}

// Claim: the scores of several members become the partition sums, whichever member held which row. A sample
// that scores nothing adds nothing, and neither do zeros behind the last score.
TEST_F(OutputRecords, BecomePartitionSums) {
  std::vector<RowScores> other(1);
  other[0].add(20, std::vector<float>{0, 60, 5}, 0);
  for (const std::uint64_t spare : {0U, 5U}) {
    std::vector<PartitionShare> sums(kSamples);
    for (const auto& [scores, part] : {std::pair(some_scores(), with({1})), std::pair(other, with({5}))}) {
      const std::uint64_t most = (scores.size() == 2 ? 4 : 3) + spare;
      const Slices bytes = write_outputs(*job, scores, kSamples, most);
      ASSERT_EQ(total_bytes(bytes), output_bytes(*job, most));
      const auto added = add_outputs(*job, bytes, part, sums);
      ASSERT_TRUE(added.ok()) << added.error().message();
    }
    const auto log_sum = [&](std::size_t sample) { return sums[sample].shift + std::log(sums[sample].sum); };
    EXPECT_NEAR(log_sum(0), std::log(std::exp(1.5) + std::exp(-2) + std::exp(2) + 1), 1e-6);
    EXPECT_NEAR(log_sum(1), 89, 1e-5);
    EXPECT_NEAR(log_sum(2), 5, 1e-6);
  }
}

// Claim: the missing samples of a short batch score nothing.
TEST_F(OutputRecords, ShortBatch) {
  std::vector<RowScores> scores(1);
  scores[0].add(4, std::vector<float>{2}, 0);
  std::vector<PartitionShare> sums(kSamples);
  ASSERT_TRUE(add_outputs(*job, write_outputs(*job, scores, 1, 1), with({1}), sums).ok());
  EXPECT_EQ(sums[0].shift, 2);
  EXPECT_EQ(sums[0].sum, 1);
  EXPECT_EQ(sums[1].sum, 0);
  EXPECT_EQ(sums[2].sum, 0);
}

// Claim: rows that the sender does not hold or that do not exist are refused, and so are more scores than
// there is room for. Their place in the bytes does not matter.
TEST_F(OutputRecords, RefusesWhatCannotBe) {
  const Slices good = write_outputs(*job, some_scores(), kSamples, 4);
  // By u32: the first sample's count and its rows, then the second one's count, then the third one's.
  const std::vector<std::pair<std::size_t, std::uint32_t>> lies = {
      {0, 6}, {0, 0xffffffff}, {1, 3}, {1, 8}, {2, 150}, {3, 0xffffffff}, {7, 4}, {10, 1}};
  for (const auto& [at, number] : lies) {
    std::string bad = joined(good);
    std::memcpy(bad.data() + sizeof(number) * at, &number, sizeof(number));
    std::vector<PartitionShare> sums(kSamples);
    const auto added = add_outputs(*job, {Slice::of(bad)}, with({1}), sums);
    ASSERT_FALSE(added.ok()) << number << " at " << at;
    EXPECT_EQ(added.error().kind, ErrorKind::kBadData);
  }
  for (std::size_t size = 0; size < total_bytes(good); size += 4) {
    std::vector<PartitionShare> sums(kSamples);
    EXPECT_FALSE(add_outputs(*job, {Slice::of(joined(good).substr(0, size))}, with({1}), sums).ok()) << size;
  }
}

// Claim: any bytes are read or refused, and nothing behind them is touched.
TEST_F(OutputRecords, AnyBytes) {
  Rng rng(5, Purpose::kTest);
  std::size_t read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(4 * rng.below(24), '\0');
    for (std::size_t at = 0; at < bytes.size(); at += 4) {
      const std::uint64_t number = rng.below(4) == 0 ? rng.next_u64() : rng.below(8);
      std::memcpy(bytes.data() + at, &number, 4);
    }
    std::vector<PartitionShare> sums(kSamples);
    const auto added = add_outputs(*job, {Slice::of(bytes)}, with({0, 1}), sums);
    read += added.ok() ? 1 : 0;
    if (!added.ok()) {
      EXPECT_EQ(added.error().kind, ErrorKind::kBadData);
    }
  }
  EXPECT_GT(read, 100U);
}

// Claim: a member that announces more scores than its rows can have is refused.
TEST_F(OutputRecords, RefusesCountsThatCannotBe) {
  const auto said = [&](std::uint64_t count) {
    return read_score_count(*job, {Slice::copy_of(std::as_bytes(std::span(&count, 1)))}, with({1}));
  };
  EXPECT_EQ(*said(0), 0U);
  EXPECT_EQ(*said(4 * kSamples), 4 * kSamples);
  for (const std::uint64_t count : {std::uint64_t{4 * kSamples + 1}, ~std::uint64_t{0}}) {
    ASSERT_FALSE(said(count).ok()) << count;
    EXPECT_EQ(said(count).error().kind, ErrorKind::kBadData);
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
