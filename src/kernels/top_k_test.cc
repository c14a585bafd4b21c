// SPDX-License-Identifier: Apache-2.0
#include "kernels/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"

namespace gossamer::kernels {
namespace {

constexpr std::uint64_t kSeed = 99;
constexpr std::size_t kHidden = 32;

// Small integers: all scores are exact in f32 and bf16, and many tie.
std::vector<float> integers(std::size_t n, std::uint64_t stream) {
  Rng rng(kSeed, Purpose::kTest, stream);
  std::vector<float> x(n);
  for (float& value : x) value = static_cast<float>(rng.below(3)) - 1.0F;
  return x;
}

struct Problem {
  std::size_t labels;
  std::size_t queries;
  std::size_t k;
  std::vector<float> rows = integers(labels * kHidden, 1);
  std::vector<float> bias = integers(labels, 2);
  std::vector<float> hidden = integers(queries * kHidden, 3);

  // All labels, sorted: the model.
  [[nodiscard]] std::vector<ScoredLabel> sorted(std::size_t query) const {
    std::vector<ScoredLabel> all(labels);
    for (std::uint32_t label = 0; label < labels; ++label) {
      float score = bias[label];
      for (std::size_t c = 0; c < kHidden; ++c)
        score += rows[label * kHidden + c] * hidden[query * kHidden + c];
      all[label] = {.label = label, .score = score};
    }
    std::sort(all.begin(), all.end(), better);
    all.resize(std::min(k, all.size()));
    return all;
  }
  [[nodiscard]] LabelRows range(std::uint32_t first, std::uint32_t count) const {
    return {.rows = rows.data() + first * kHidden,
            .stride = kHidden,
            .bias = bias.data() + first,
            .first = first,
            .count = count};
  }
};

template <class E>
std::vector<ScoredLabel> best_of(const BlockedTopK<E>& top, std::size_t query) {
  const std::span<const ScoredLabel> best = top.best(query);
  return {best.begin(), best.end()};
}

class BlockedTopKOnIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!supported(GetParam())) GTEST_SKIP() << "this CPU has no " << name(GetParam());
  }
};

template <class E>
void expect_exact(Isa isa) {
  for (const std::size_t labels : {1U, 63U, 64U, 65U, 1000U}) {
    for (const std::size_t queries : {1U, 32U, 45U}) {
      for (const std::size_t k : {1U, 5U, 100U}) {
        const Problem problem{.labels = labels, .queries = queries, .k = k};
        BlockedTopK<E> top(isa, {.hidden = kHidden, .queries = queries, .k = k});
        top.begin(problem.hidden.data(), queries);
        top.scan(problem.range(0, static_cast<std::uint32_t>(labels)));
        for (std::size_t q = 0; q < queries; ++q) {
          ASSERT_EQ(best_of(top, q), problem.sorted(q))
              << labels << " labels, query " << q << ", k " << k << ", seed " << kSeed;
        }
      }
    }
  }
}

// The lists are those of sorting all labels, ties by smaller id, for f32 products.
TEST_P(BlockedTopKOnIsa, F32IsExact) { expect_exact<float>(GetParam()); }

// The same for bf16 products.
TEST_P(BlockedTopKOnIsa, Bf16IsExact) { expect_exact<Bf16>(GetParam()); }

// Cutting the labels into scans of any size, or over two merged objects, changes nothing.
TEST_P(BlockedTopKOnIsa, CutsDoNotMatter) {
  const Problem problem{.labels = 500, .queries = 40, .k = 7};
  const TopKShape shape{.hidden = kHidden, .queries = 40, .k = 7};
  BlockedTopK<float> top(GetParam(), shape);
  BlockedTopK<float> other(GetParam(), shape);
  for (const std::uint32_t cut : {1U, 64U, 137U, 499U}) {
    top.begin(problem.hidden.data(), 40);
    top.scan(problem.range(0, cut));
    top.scan(problem.range(cut, 500 - cut));
    for (std::size_t q = 0; q < 40; ++q) ASSERT_EQ(best_of(top, q), problem.sorted(q)) << cut;

    top.begin(problem.hidden.data(),
              40);  // higher ids first: the merge must still prefer the smaller at ties
    top.scan(problem.range(cut, 500 - cut));
    other.begin(problem.hidden.data(), 40);
    other.scan(problem.range(0, cut));
    for (std::size_t q = 0; q < 40; ++q) {
      top.add(q, other.best(q));
      ASSERT_EQ(best_of(top, q), problem.sorted(q)) << cut;
    }
  }
}

// A block smaller than the last leaves nothing behind; an empty one is fine.
TEST_P(BlockedTopKOnIsa, BlocksAreIndependent) {
  const Problem problem{.labels = 200, .queries = 40, .k = 3};
  BlockedTopK<float> top(GetParam(), {.hidden = kHidden, .queries = 40, .k = 3});
  for (const std::size_t count : {40U, 1U, 0U, 17U}) {
    top.begin(problem.hidden.data(), count);
    top.scan(problem.range(0, 200));
    for (std::size_t q = 0; q < count; ++q) ASSERT_EQ(best_of(top, q), problem.sorted(q));
  }
}

// Labels whose score is NaN or minus infinity never enter a list.
TEST_P(BlockedTopKOnIsa, BadScoresStayOut) {
  Problem problem{.labels = 100, .queries = 2, .k = 100};
  problem.bias[10] = NAN;
  problem.bias[20] = -std::numeric_limits<float>::infinity();
  BlockedTopK<float> top(GetParam(), {.hidden = kHidden, .queries = 2, .k = 100});
  top.begin(problem.hidden.data(), 2);
  top.scan(problem.range(0, 100));
  EXPECT_EQ(top.best(0).size(), 98U);
  for (const ScoredLabel& best : top.best(0)) EXPECT_TRUE(best.label != 10 && best.label != 20);
}

// Ids that fall back are a bug of the caller: ties would be broken wrongly.
TEST(BlockedTopKDeath, RefusesFallingIds) {
  const Problem problem{.labels = 100, .queries = 1, .k = 1};
  BlockedTopK<float> top(Isa::kScalar, {.hidden = kHidden, .queries = 1, .k = 1});
  top.begin(problem.hidden.data(), 1);
  top.scan(problem.range(50, 50));
  EXPECT_DEATH(top.scan(problem.range(0, 50)), "rows.first >= next_label_");
}

INSTANTIATE_TEST_SUITE_P(, BlockedTopKOnIsa, testing::ValuesIn(kAllIsas), [](const auto& test) {
  std::string text(name(test.param));
  std::erase(text, '-');
  return text;
});

}  // namespace
}  // namespace gossamer::kernels
