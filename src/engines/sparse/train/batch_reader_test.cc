// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/train/batch_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "host/sim/compute.h"
#include "learn/data/in_memory_dataset.h"

namespace gossamer::sparse_engine {
namespace {

// Record i has the features i, i+1, i+2 with value 1 and the label i.
data::InMemoryDataset numbered(std::uint32_t records) {
  data::InMemoryDataset set({.features = records + 2, .labels = records});
  for (std::uint32_t i = 0; i < records; ++i) set.add({i, i + 1, i + 2}, {1, 1, 1}, {i});
  return set;
}

const text::FeatureWeighting kPlain{.l2 = false, .idf = {}};

std::vector<float> values(const data::Batch& batch) {
  return {batch.features.value.begin(), batch.features.value.end()};
}

// The steps of one epoch hold every record once, by the plan, with its own features and label.
TEST(BatchReader, StepsFollowThePlan) {
  const data::InMemoryDataset set = numbered(24);
  host::SimCompute compute({.workers = 3});
  BatchReader reader(set, kPlain, compute);
  const data::SamplingPlan plan(7, set.size());
  std::vector<std::uint32_t> seen;
  for (std::uint64_t step = 0; step < 4; ++step) {
    const data::Batch batch = reader.read_step(plan, {.step = StepNumber{step}, .batch = 6});
    ASSERT_EQ(batch.size(), 6U);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::uint32_t label = batch.labels.row(i)[0];
      EXPECT_EQ(plan.record(SampleId{step * 6 + i}).value, label);
      EXPECT_EQ(batch.features.row(i).index[2], label + 2);
      seen.push_back(label);
    }
  }
  std::sort(seen.begin(), seen.end());
  for (std::uint32_t i = 0; i < 24; ++i) EXPECT_EQ(seen[i], i);
}

// A step may cross from one epoch into the next: its samples are the plan's.
TEST(BatchReader, CrossesEpochs) {
  const data::InMemoryDataset set = numbered(5);
  host::SimCompute compute({.workers = 2});
  BatchReader reader(set, kPlain, compute);
  const data::SamplingPlan plan(1, set.size());
  const data::Batch batch = reader.read_step(plan, {.step = StepNumber{1}, .batch = 4});
  ASSERT_EQ(batch.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(batch.labels.row(i)[0], plan.record(SampleId{4 + i}).value);
}

// Claim: the values of a sample are weighted as its record's are. What dropout keeps is weighted, too.
TEST(BatchReader, ValuesAreWeighted) {
  data::InMemoryDataset set({.features = 6, .labels = 20});
  for (std::uint32_t i = 0; i < 20; ++i)
    set.add({i % 3, 3 + i % 2, 5}, {static_cast<float>(1 + i), 2, 0.5F}, {i});
  const text::FeatureWeighting weighting{
      .counts = text::CountScale::kLog, .l2 = true, .idf = {0.5F, 1, 1.5F, 2, 2.5F, 3}};
  const data::SamplingPlan plan(1, set.size());
  host::SimCompute compute({.workers = 3});
  BatchReader reader(set, weighting, compute);
  for (const double dropout : {0.0, 0.5}) {
    const data::Batch batch =
        reader.read_step(plan, {.step = StepNumber{0}, .batch = 20, .dropout = dropout, .seed = 1});
    std::size_t kept = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      const data::SparseRow got = batch.features.row(i);
      const data::Record record = set.record(RecordIndex{batch.labels.row(i)[0]});
      ASSERT_TRUE(std::ranges::equal(got.index, record.features.index));
      std::vector<float> want(3);
      weighting.apply(record.features, want);
      for (std::size_t f = 0; f < 3; ++f) {
        if (dropout > 0 && got.value[f] == 0) continue;
        ++kept;
        EXPECT_FLOAT_EQ(got.value[f], dropout > 0 ? 2 * want[f] : want[f]) << i << " " << f;
      }
    }
    EXPECT_TRUE(dropout > 0 ? kept > 10 && kept < 50 : kept == 60) << kept;
  }
}

// Dropout hides about its fraction of features and keeps the expectation. The mask is the same for the same
// step with any number of workers, and another for another step or seed.
TEST(BatchReader, DropoutIsAFunctionOfStepAndSample) {
  const data::InMemoryDataset set = numbered(1000);
  const data::SamplingPlan plan(1, set.size());
  const auto read = [&](int workers, StepRequest request) {
    host::SimCompute compute({.workers = workers});
    BatchReader reader(set, kPlain, compute);
    return values(reader.read_step(plan, request));
  };
  const StepRequest request{.step = StepNumber{3}, .batch = 1000, .dropout = 0.25, .seed = 9};
  const std::vector<float> once = read(1, request);
  EXPECT_EQ(once, read(4, request));
  StepRequest other = request;
  other.step = StepNumber{4};
  EXPECT_NE(once, read(1, other));
  other = request;
  other.seed = 10;
  EXPECT_NE(once, read(1, other));

  double sum = 0;
  for (const float v : once) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.75F) << v;
    sum += v;
  }
  // 3000 draws of mean 1 and variance 1/3: five standard errors.
  EXPECT_NEAR(sum / 3000, 1, 5 * 0.0106);
}

}  // namespace
}  // namespace gossamer::sparse_engine
