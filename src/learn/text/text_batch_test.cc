// SPDX-License-Identifier: Apache-2.0
#include "learn/text/text_batch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/sim/compute.h"

namespace gossamer::text {
namespace {

const FeaturizerOptions kOptions{.min_document_frequency = 1};

std::string text_of(std::uint32_t i) {
  return "word" + std::to_string(i % 97) + " common word" + std::to_string(i % 13);
}

// A record as text, to compare.
std::string shown(const data::Record& record) {
  std::string out;
  for (std::size_t k = 0; k < record.features.index.size(); ++k) {
    out += std::to_string(record.features.index[k]) + ":" + std::to_string(record.features.value[k]) + " ";
  }
  for (const std::uint32_t label : record.labels) out += "|" + std::to_string(label);
  return out;
}

// Every record comes out once, in order, with its labels and the features that it has alone. That holds for
// any number of workers and batches. The vocabulary is that of one counter.
TEST(TextBatch, SameForAnyNumberOfWorkers) {
  constexpr std::uint32_t kRecords = 5000;
  FeatureCounter alone(kOptions);
  for (std::uint32_t i = 0; i < kRecords; ++i) ASSERT_TRUE(alone.add(text_of(i)).ok());
  const Featurizer featurizer(alone.finish());
  std::vector<std::string> expected;
  FeaturizerScratch scratch;
  for (std::uint32_t i = 0; i < kRecords; ++i) {
    const std::vector<std::uint32_t> labels(i % 3, i);
    const auto row = featurizer.features(text_of(i), i % 5 == 0 ? "common" : "", 0.5F, scratch);
    ASSERT_TRUE(row.ok());
    expected.push_back(shown({.features = *row, .labels = labels}));
  }
  for (int workers = 1; workers <= 4; ++workers) {
    host::SimCompute compute({.workers = workers, .seed = 5});
    TextBatch batch(compute);
    std::vector<FeatureCounter> counters(static_cast<std::size_t>(workers), FeatureCounter(kOptions));
    std::vector<std::string> got;
    const auto sink = [&got](const data::Record& record) -> Result<void> {
      got.push_back(shown(record));
      return {};
    };
    for (std::uint32_t i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(batch.add(text_of(i), {}, {}).ok());
      if (batch.full()) batch.count(counters);
    }
    batch.count(counters);
    for (std::size_t c = 1; c < counters.size(); ++c) counters[0].merge(counters[c]);
    EXPECT_EQ(counters[0].finish().features, featurizer.state().features);
    for (std::uint32_t i = 0; i < kRecords; ++i) {
      const std::vector<std::uint32_t> labels(i % 3, i);
      ASSERT_TRUE(batch.add(text_of(i), i % 5 == 0 ? "common" : "", labels).ok());
      if (batch.full()) {
        ASSERT_TRUE(batch.featurize(featurizer, 0.5F, sink).ok());
      }
    }
    ASSERT_TRUE(batch.featurize(featurizer, 0.5F, sink).ok());
    EXPECT_EQ(got, expected) << workers << " workers";
  }
}

// Text that is no UTF-8 is the error of its own record and changes nothing. A sink's error ends the batch.
TEST(TextBatch, Errors) {
  host::SimCompute compute({.workers = 2, .seed = 5});
  TextBatch batch(compute);
  ASSERT_TRUE(batch.add("good", {}, {}).ok());
  for (const auto& [text, context] : {std::pair("b\xFF", ""), std::pair("b", "\xC3")}) {
    const auto bad = batch.add(text, context, {});
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().kind, ErrorKind::kBadData);
  }
  FeatureCounter counter(kOptions);
  ASSERT_TRUE(counter.add("good").ok());
  const Featurizer featurizer(counter.finish());
  int calls = 0;
  const auto full = batch.featurize(featurizer, 0, [&calls](const data::Record&) -> Result<void> {
    ++calls;
    return Error{.what = "full"};
  });
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace gossamer::text
