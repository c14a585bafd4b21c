// SPDX-License-Identifier: Apache-2.0
#include "learn/data/text_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "host/sim/compute.h"
#include "learn/data/read/test_collected_records.h"

namespace gossamer::data {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t kEnd = TokenText::kLineEnd;

TokenText text_of(std::vector<std::uint32_t> token) {
  TokenText text;
  text.token = std::move(token);
  for (const std::uint32_t word : text.token) {
    if (word == kEnd) continue;
    if (word >= text.count.size()) text.count.resize(word + 1);
    ++text.count[word];
  }
  for (std::size_t word = 0; word < text.count.size(); ++word) text.words.push_back(std::to_string(word));
  return text;
}

// Word i stands at position i: every word tells where it was.
TokenText numbered(std::uint32_t words) {
  std::vector<std::uint32_t> token(words);
  for (std::uint32_t i = 0; i < words; ++i) token[i] = i;
  return text_of(std::move(token));
}

TokenText random_text(std::uint64_t seed, std::size_t size, std::uint32_t words) {
  Rng rng(seed, Purpose::kTest);
  std::vector<std::uint32_t> token;
  for (std::uint32_t word = 0; word < words; ++word) token.push_back(word);
  while (token.size() < size) {
    // Word 0 is every second one, so that there is something to thin out.
    const auto word = static_cast<std::uint32_t>(rng.below(2) == 0 ? 0 : rng.below(words));
    token.push_back(rng.below(40) == 0 && token.back() != kEnd ? kEnd : word);
  }
  while (token.back() == kEnd) token.pop_back();
  return text_of(std::move(token));
}

std::vector<CollectedRecord> collect(const Batch& batch) {
  std::vector<CollectedRecord> records;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    records.push_back(data::collect({.features = batch.features.row(i), .labels = batch.labels.row(i)}));
  }
  return records;
}

// With fixed windows and nothing thinned out, each sample is exactly the window around its centre, at the
// text's ends too. A pass asks for no centre twice.
TEST(TextWindows, CutsFullWindows) {
  const TokenText text = numbered(1000);
  host::SimCompute compute({.workers = 3});
  TextWindows windows(text, {.window = 2, .shrink = false, .sample = 0, .batch = 64}, compute);
  std::set<std::uint32_t> centres;
  for (std::uint64_t step = 0; step < windows.steps_per_epoch(); ++step) {
    const Batch batch = windows.read_step(StepNumber{step});
    EXPECT_EQ(batch.size(), 64U);
    for (const CollectedRecord& record : collect(batch)) {
      ASSERT_EQ(record.labels.size(), 1U);
      const std::uint32_t centre = record.labels.front();
      EXPECT_TRUE(centres.insert(centre).second) << centre;
      std::vector<std::uint32_t> around;
      for (std::uint32_t at = centre < 2 ? 0 : centre - 2; at <= std::min(999U, centre + 2); ++at) {
        if (at != centre) around.push_back(at);
      }
      EXPECT_EQ(record.index, around);
      for (const float value : record.value) EXPECT_FLOAT_EQ(value, 1.0F / static_cast<float>(around.size()));
    }
  }
  EXPECT_EQ(centres.size(), 64 * windows.steps_per_epoch());
  EXPECT_GT(centres.size(), 600U);
}

// Windows end at line ends, and lone words of a line are no centres. A word that stands twice in a window
// counts twice in the mean.
TEST(TextWindows, LinesAndRepeats) {
  const TokenText text = text_of({0, 1, 1, kEnd, 2, kEnd, 3, 0});
  host::SimCompute compute({.workers = 1});
  TextWindows windows(text, {.window = 5, .shrink = false, .sample = 0, .batch = 5}, compute);
  std::vector<CollectedRecord> records = collect(windows.read_step(StepNumber{0}));
  ASSERT_EQ(records.size(), 5U);
  std::ranges::sort(records, [](const auto& a, const auto& b) {
    return std::pair(a.labels, a.index) < std::pair(b.labels, b.index);
  });
  EXPECT_EQ(records[0], (CollectedRecord{{1}, {1}, {0}}));
  EXPECT_EQ(records[1], (CollectedRecord{{3}, {1}, {0}}));
  EXPECT_EQ(records[2], (CollectedRecord{{0, 1}, {0.5F, 0.5F}, {1}}));
  EXPECT_EQ(records[4], (CollectedRecord{{0}, {1}, {3}}));
}

// A text of which next to nothing stays still gives steps, each of a sample or more. It does so soon: the
// runs that are read for a step have a bound.
TEST(TextWindows, NextToNothingStays) {
  const TokenText text = random_text(1, 300, 50);
  host::SimCompute compute({.workers = 2});
  for (const double sample : {1e-25, 1e-300}) {
    TextWindows windows(text, {.sample = sample, .batch = 64}, compute);
    EXPECT_EQ(windows.steps_per_epoch(), 1U);
    EXPECT_EQ(collect(windows.read_step(StepNumber{3})).size(), 1U);
  }
}

// Skip-gram turns samples round: the centre in, all words around it out and no others.
TEST(TextWindows, SkipGram) {
  const TokenText text = numbered(100);
  host::SimCompute compute({.workers = 2});
  TextWindows windows(
      text, {.mode = WindowMode::kSkipGram, .window = 2, .shrink = false, .sample = 0, .batch = 16}, compute);
  for (const CollectedRecord& record : collect(windows.read_step(StepNumber{0}))) {
    ASSERT_EQ(record.index.size(), 1U);
    EXPECT_THAT(record.value, ElementsAre(1));
    const std::uint32_t centre = record.index[0];
    std::vector<std::uint32_t> around;
    for (std::uint32_t at = centre < 2 ? 0 : centre - 2; at <= std::min(99U, centre + 2); ++at) {
      if (at != centre) around.push_back(at);
    }
    EXPECT_EQ(record.labels, around);
  }
}

// The same step gives the same samples, whatever was read before and whatever the number of workers; another
// seed or epoch gives others.
TEST(TextWindows, StepsAreFunctionsOfTheirNumber) {
  const TokenText text = random_text(1, 3000, 50);
  const auto read = [&](int workers, std::uint64_t seed, std::uint64_t step) {
    host::SimCompute compute({.workers = workers});
    TextWindows windows(text, {.sample = 0.01, .batch = 100, .seed = seed}, compute);
    if (step > 0) static_cast<void>(windows.read_step(StepNumber{0}).size());
    return collect(windows.read_step(StepNumber{step}));
  };
  const auto expected = read(1, 7, 5);
  EXPECT_EQ(read(4, 7, 5), expected);
  EXPECT_NE(read(1, 8, 5), expected);
  host::SimCompute compute({.workers = 1});
  TextWindows windows(text, {.sample = 0.01, .batch = 100, .seed = 7}, compute);
  EXPECT_EQ(collect(windows.read_step(StepNumber{5})), expected);
  EXPECT_NE(collect(windows.read_step(StepNumber{5 + windows.steps_per_epoch()})), expected);
}

// Occurrences stay with sqrt(t / f) (equation 5), in each epoch other ones; the label counts are what a step
// shows on average.
TEST(TextWindows, ThinsOutFrequentWords) {
  const TokenText text = random_text(3, 40'000, 30);
  host::SimCompute compute({.workers = 2});
  TextWindows windows(text, {.window = 5, .sample = 0.02, .batch = 500}, compute);
  double total = 0;
  for (const std::uint64_t count : text.count) total += static_cast<double>(count);
  const double share = static_cast<double>(text.count[0]) / total;
  EXPECT_NEAR(windows.keep(0), std::sqrt(0.02 / share), 1e-9);
  std::vector<double> labels(30);
  const std::uint64_t steps = 3 * windows.steps_per_epoch();
  double samples = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const Batch batch = windows.read_step(StepNumber{step});
    samples += static_cast<double>(batch.size());
    for (const std::uint32_t label : batch.labels.label) ++labels[label];
  }
  EXPECT_GT(samples, 0.97 * 500 * static_cast<double>(steps));
  for (std::size_t word = 0; word < 30; ++word) {
    const double expected =
        samples * windows.label_count()[word] / static_cast<double>(windows.samples_per_epoch());
    // Neighbouring centres are drawn together: a little more than five standard deviations of independent
    // ones.
    EXPECT_NEAR(labels[word], expected, 6 * std::sqrt(expected)) << word;
  }
}

// Claim: A word's label count in skip-gram says how many samples of a pass have the word around their centre,
// that of a word which is a fifth of the text, too.
TEST(TextWindows, CountsLabelsOfSkipGram) {
  Rng rng(4, Purpose::kTest);
  std::vector<std::uint32_t> token;
  for (std::uint32_t i = 0; i < 40'000; ++i)
    token.push_back(rng.below(5) == 0 ? 0 : 1 + static_cast<std::uint32_t>(rng.below(29)));
  const TokenText text = text_of(std::move(token));
  host::SimCompute compute({.workers = 2});
  for (const bool shrink : {false, true}) {
    TextWindows windows(
        text, {.mode = WindowMode::kSkipGram, .window = 5, .shrink = shrink, .sample = 0, .batch = 500},
        compute);
    std::vector<double> labels(30);
    double samples = 0;
    for (std::uint64_t step = 0; step < windows.steps_per_epoch(); ++step) {
      const Batch batch = windows.read_step(StepNumber{step});
      samples += static_cast<double>(batch.size());
      for (const std::uint32_t label : batch.labels.label) ++labels[label];
    }
    for (std::size_t word = 0; word < 30; ++word) {
      const double expected =
          samples * windows.label_count()[word] / static_cast<double>(windows.samples_per_epoch());
      EXPECT_NEAR(labels[word] / expected, 1, word == 0 ? 0.02 : 0.06) << word << " " << shrink;
    }
  }
}

// The number of words around each centre that a pass asks for.
std::map<std::uint32_t, std::size_t> reach_of_centres(TextWindows& windows, std::uint64_t epoch) {
  std::map<std::uint32_t, std::size_t> reach;
  for (std::uint64_t step = 0; step < windows.steps_per_epoch(); ++step) {
    for (const CollectedRecord& record :
         collect(windows.read_step(StepNumber{epoch * windows.steps_per_epoch() + step}))) {
      reach[record.labels.front()] = record.index.size();
    }
  }
  return reach;
}

// Claim: Each pass draws anew which occurrences stay and how far windows reach. What two passes have in
// common is what chance gives.
TEST(TextWindows, DrawsAnewInEachPass) {
  constexpr std::uint32_t kWords = 4000;
  const TokenText text = numbered(kWords);
  host::SimCompute compute({.workers = 1});
  // With t = f / 4 an occurrence stays with chance 1/2.
  TextWindows thinned(text, {.window = 2, .shrink = false, .sample = 0.25 / kWords, .batch = 100}, compute);
  ASSERT_NEAR(thinned.keep(7), 0.5, 1e-9);
  const auto first = reach_of_centres(thinned, 0);
  const auto second = reach_of_centres(thinned, 1);
  double again = 0;
  for (const auto& [centre, reach] : second) again += static_cast<double>(first.count(centre));
  // A centre of one pass is one of another with the chance that any word has. Five standard deviations of
  // 1,600 draws are 0.062.
  EXPECT_GT(second.size(), 1400U);
  EXPECT_NEAR(again / static_cast<double>(second.size()), static_cast<double>(first.size()) / kWords, 0.062);

  TextWindows whole(text, {.window = 5, .sample = 0, .batch = 100}, compute);
  const auto before = reach_of_centres(whole, 0);
  double both = 0;
  double same = 0;
  for (const auto& [centre, reach] : reach_of_centres(whole, 1)) {
    const auto found = before.find(centre);
    if (found == before.end()) continue;
    ++both;
    same += found->second == reach ? 1 : 0;
  }
  EXPECT_GT(both, kWords / 2);
  EXPECT_NEAR(same / both, 1.0 / 5, 0.04);
}

// The reach is uniform in 1..window: each comes up equally often, and the mean number of words around is
// window + 1.
TEST(TextWindows, ShrinksWindows) {
  const TokenText text = numbered(20'000);
  host::SimCompute compute({.workers = 1});
  TextWindows windows(text, {.window = 7, .sample = 0, .batch = 10'000}, compute);
  const Batch batch = windows.read_step(StepNumber{0});
  const double mean = static_cast<double>(batch.features.index.size()) / static_cast<double>(batch.size());
  // Standard deviation of 2b for b in 1..7 is 4; of the mean of 10,000, 0.04.
  EXPECT_NEAR(mean, 8, 0.2);
  std::vector<double> reaching(8);
  for (const CollectedRecord& record : collect(batch)) ++reaching[(record.index.size() + 1) / 2];
  // Five standard deviations of a share of 1/7 are 0.018.
  for (std::size_t side = 1; side <= 7; ++side) {
    EXPECT_NEAR(reaching[side] / static_cast<double>(batch.size()), 1.0 / 7, 0.018) << side;
  }
}

// Tiny texts give steps too, down to a single pair, however much is thinned out.
TEST(TextWindows, TinyTexts) {
  const TokenText text = text_of({0, kEnd, 0, 0});
  EXPECT_EQ(first_window(text), 2U);
  host::SimCompute compute({.workers = 2});
  TextWindows windows(text, {.sample = 1e-9, .batch = 8}, compute);
  for (std::uint64_t step = 0; step < 20; ++step) EXPECT_GE(windows.read_step(StepNumber{step}).size(), 1U);
  EXPECT_EQ(first_window(text_of({0, kEnd, 1})), 3U);
}

// An evaluation's window is all words within reach on the line.
TEST(TextWindows, FullWindow) {
  const TokenText text = text_of({0, 1, 2, kEnd, 3, 4, 5, 6});
  std::vector<std::uint32_t> context;
  full_window(text, 5, 2, context);
  EXPECT_THAT(context, testing::UnorderedElementsAre(3, 5, 6));
  context.clear();
  full_window(text, 2, 9, context);
  EXPECT_THAT(context, testing::UnorderedElementsAre(0, 1));
}

}  // namespace
}  // namespace gossamer::data
