// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/held_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "learn/data/in_memory_dataset.h"

namespace gossamer::sparse_engine {
namespace {

// Ranks the label that is the query's first feature, before the next one.
class FirstFeature final : public Predictor {
 public:
  Result<void> predict(const data::SparseRows& queries, std::size_t top_k, PredictionBlock& out) override {
    largest = std::max(largest, queries.rows());
    out.top_k = top_k;
    out.count.assign(queries.rows(), 2);
    out.entries.assign(queries.rows() * top_k, {});
    for (std::size_t q = 0; q < queries.rows(); ++q) {
      const std::uint32_t feature = queries.row(q).index.front();
      out.entries[q * top_k] = {.id = feature, .score = 0};
      out.entries[q * top_k + 1] = {.id = feature + 1, .score = -1};
    }
    return {};
  }

  std::size_t largest = 0;
};

// Claim: each held-out record is asked for once, and both halves together are all of them. Records of one
// block are in one half.
TEST(RankHeldOut, BothHalvesAreAll) {
  constexpr std::uint32_t kRecords = 5000;
  data::InMemoryDataset dataset({.features = kRecords, .labels = kRecords + 1});
  for (std::uint32_t i = 0; i < kRecords; ++i) dataset.add({i}, {1.0F}, {i + 1});
  const data::HoldOut hold_out(dataset.size(), 1600);
  FirstFeature predictor;
  PredictionBlock block;
  std::vector<std::uint64_t> all;
  std::vector<std::uint64_t> parted;
  const auto rank = [&](std::optional<Half> half, std::vector<std::uint64_t>& held) {
    const HeldOutRecords records{.dataset = dataset, .hold_out = hold_out, .half = half};
    const auto done = rank_held_out(predictor, records, 3, block, [&](const RankedRecord& ranked) {
      held.push_back(ranked.held);
      EXPECT_FALSE(ranked.correct(0));
      EXPECT_TRUE(ranked.correct(1));
      EXPECT_EQ(ranked.record.labels.front(), hold_out.held_record(ranked.held).value + 1);
    });
    EXPECT_TRUE(done.ok());
  };
  rank({}, all);
  for (const Half half : kHalves) {
    const std::size_t before = parted.size();
    rank(half, parted);
    EXPECT_NEAR(static_cast<double>(parted.size() - before), static_cast<double>(all.size()) / 2,
                data::HoldOut::kBlock);
  }
  EXPECT_EQ(all.size(), hold_out.held());
  EXPECT_THAT(parted, ::testing::UnorderedElementsAreArray(all));
  for (std::uint64_t i = 1; i < hold_out.held(); ++i) {
    if (i % data::HoldOut::kBlock != 0) {
      EXPECT_EQ(half_of_held(i), half_of_held(i - 1)) << i;
    }
  }
  EXPECT_LE(predictor.largest, 512U);
}

}  // namespace
}  // namespace gossamer::sparse_engine
