// SPDX-License-Identifier: Apache-2.0
//
// What every family promises: forms, instruction sets, codes and slack.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "learn/lsh/simhash.h"
#include "learn/lsh/winner_hash.h"

namespace gossamer::lsh {
namespace {

using kernels::Isa;
using kernels::kCodeRows;

constexpr std::uint64_t kSeed = 811;

std::vector<float> random_vector(std::size_t n, std::uint64_t stream) {
  Rng rng(kSeed, Purpose::kTest, stream);
  std::vector<float> v(n);
  for (float& x : v) x = rng.normal();
  return v;
}

struct Kind {
  std::string name;
  std::unique_ptr<HashFamily> (*make)(const HashShape& shape, std::uint64_t seed, Isa isa);
};

const std::vector<Kind> kKinds = {
    {"SimHash",
     [](const HashShape& shape, std::uint64_t seed, Isa isa) -> std::unique_ptr<HashFamily> {
       HashShape nine = shape;
       nine.functions = 9;
       return std::make_unique<SimHash>(SimHashOptions{.shape = nine, .seed = seed, .isa = isa});
     }},
    {"WinnerHash", [](const HashShape& shape, std::uint64_t seed, Isa isa) -> std::unique_ptr<HashFamily> {
       return std::make_unique<WinnerHash>(WinnerHashOptions{.shape = shape, .seed = seed, .isa = isa});
     }}};

// A family with three functions of three bits, or nine of one.
class Families : public testing::TestWithParam<Kind> {
 protected:
  [[nodiscard]] static std::unique_ptr<HashFamily> make(std::size_t dimension, std::size_t tables,
                                                        std::uint64_t seed = 5, Isa isa = Isa::kScalar) {
    return GetParam().make({.dimension = dimension, .functions = 3, .tables = tables}, seed, isa);
  }
};

std::vector<std::uint32_t> dense_codes(const HashFamily& family, std::span<const float> v) {
  HashWorkspace workspace(family.shape());
  std::vector<std::uint32_t> codes(family.shape().tables);
  family.hash_dense(v, workspace, codes);
  return codes;
}

struct Block {
  std::vector<std::uint32_t> codes;
  std::vector<float> slack = std::vector<float>(kCodeRows);
};
Block block_codes(const HashFamily& family, const std::vector<std::vector<float>>& vectors) {
  HashWorkspace workspace(family.shape());
  Block block{.codes = std::vector<std::uint32_t>(family.shape().tables * kCodeRows)};
  std::vector<const float*> rows;
  rows.reserve(vectors.size());
  for (const auto& v : vectors) rows.push_back(v.data());
  family.hash_block(rows, workspace, {.codes = block.codes.data(), .slack = block.slack.data()});
  return block;
}

// A vector has the same codes in a block of any size, at any place in it, and alone; and on all instruction
// sets. The same holds with zeros, with equal coordinates and for the vector 0.
TEST_P(Families, FormsAndInstructionSetsAgree) {
  for (const std::size_t dimension : {std::size_t{8}, std::size_t{33}, std::size_t{128}}) {
    const auto scalar = make(dimension, 7);
    std::vector<std::vector<float>> vectors;
    for (std::size_t i = 0; i < 23; ++i) {
      std::vector<float> v = random_vector(dimension, i);
      for (std::size_t j = 0; i % 3 == 1 && j < dimension; ++j) v[j] = std::max(v[j], 0.0F);
      for (std::size_t j = 0; i % 5 == 2 && j < dimension; ++j) v[j] = std::round(v[j]);
      if (i == 7) v.assign(dimension, 0.0F);
      vectors.push_back(v);
    }
    const Block want = block_codes(*scalar, vectors);
    for (const Isa isa : kernels::kAllIsas) {
      if (!kernels::supported(isa)) continue;
      const auto family = make(dimension, 7, 5, isa);
      const Block got = block_codes(*family, vectors);
      const Block alone = block_codes(*family, {vectors[3]});
      for (std::size_t t = 0; t < 7; ++t) {
        EXPECT_EQ(alone.codes[t * kCodeRows], want.codes[t * kCodeRows + 3]);
        for (std::size_t r = 0; r < vectors.size(); ++r) {
          EXPECT_EQ(got.codes[t * kCodeRows + r], want.codes[t * kCodeRows + r]) << name(isa) << r;
          EXPECT_EQ(dense_codes(*family, vectors[r])[t], want.codes[t * kCodeRows + r]) << name(isa) << r;
        }
      }
    }
  }
}

// Every code below 2^code_bits occurs in every table, and none above. (SLIDE's own packing reaches 3.6 % of
// its buckets.)
TEST_P(Families, CodesFillTheirRange) {
  constexpr std::size_t kEntries = 100;
  const auto family = make(kEntries, 3);
  ASSERT_EQ(family->code_bits(), 9U);
  std::vector<std::set<std::uint32_t>> seen(3);
  HashWorkspace workspace(family->shape());
  std::vector<std::uint32_t> codes(3);
  std::vector<std::uint32_t> index(kEntries);
  std::iota(index.begin(), index.end(), 0U);
  for (std::size_t trial = 0; trial < 20000; ++trial) {
    const std::vector<float> value = random_vector(kEntries, trial);
    family->hash({.index = index, .value = value}, workspace, codes);
    for (std::size_t t = 0; t < 3; ++t) seen[t].insert(codes[t]);
  }
  for (const auto& s : seen) {
    EXPECT_EQ(s.size(), 512U);
    EXPECT_EQ(*s.rbegin(), 511U);
  }
}

// Another seed gives other functions, the same seed the same; tables of one family differ.
TEST_P(Families, FollowTheSeed) {
  const std::vector<float> v = random_vector(64, 1);
  const auto codes = dense_codes(*make(64, 20), v);
  EXPECT_EQ(dense_codes(*make(64, 20), v), codes);
  EXPECT_NE(dense_codes(*make(64, 20, 6), v), codes);
  EXPECT_GT(std::set<std::uint32_t>(codes.begin(), codes.end()).size(), 10U);
}

// Slack is safe: no move by 0.999 of it changes a code. The moves go in the directions that hurt most: two
// coordinates towards each other, or one coordinate alone. Where orders decide it is tight: some such move by
// 1.001 of it changes a code.
TEST_P(Families, SlackIsSafe) {
  const auto family = make(24, 9);
  bool tight = false;
  for (std::size_t i = 0; i < 12; ++i) {
    const std::vector<float> v = random_vector(24, 100 + i);
    const Block before = block_codes(*family, {v});
    const float slack = before.slack[0];
    ASSERT_GT(slack, 0.0F);
    ASSERT_LT(slack, 1.0F);
    for (const float share : {0.999F, 1.001F}) {
      std::vector<std::vector<float>> moved;
      for (std::size_t a = 0; a < 24; ++a) {
        for (std::size_t b = 0; b < 24; ++b) {
          std::vector<float> w = v;
          const float step = share * slack * (a == b ? 1.0F : std::sqrt(0.5F));
          w[a] += a == b && v[a] > 0 ? -step : step;
          if (a != b) w[b] -= step;
          moved.push_back(w);
        }
      }
      bool same = true;
      for (const auto& w : moved) same = same && dense_codes(*family, w) == dense_codes(*family, v);
      if (share < 1) {
        EXPECT_TRUE(same) << i;
      }
      tight = tight || !same;
    }
  }
  EXPECT_TRUE(tight || GetParam().name == "SimHash");
}

INSTANTIATE_TEST_SUITE_P(, Families, testing::ValuesIn(kKinds),
                         [](const auto& test) { return test.param.name; });

// The slack of SimHash is tight up to roundings. A move of 0.999 of it along the weakest projection keeps all
// codes. A move longer by 1 %, and by twice what is taken off for roundings, changes one. Projections of unit
// vectors tell what the projections are.
TEST(SimHash, SlackIsTheDistanceToTheNearestPlane) {
  const SimHash family({.shape = {.dimension = 20, .functions = 4, .tables = 10}, .seed = 3});
  HashWorkspace workspace(family.shape());
  std::vector<std::vector<float>> unit;  // projections of the unit vectors
  for (std::uint32_t i = 0; i < 20; ++i) {
    const float one = 1;
    unit.emplace_back(40);
    family.add_projections({.index = {&i, 1}, .value = {&one, 1}}, workspace, unit.back());
  }
  for (std::size_t k = 0; k < 20; ++k) {
    const std::vector<float> v = random_vector(20, k);
    std::vector<float> projection(40);
    family.add_projections(nonzeros(v, workspace), workspace, projection);
    std::size_t weakest = 0;
    for (std::size_t f = 1; f < 40; ++f) {
      if (std::abs(projection[f]) < std::abs(projection[weakest])) weakest = f;
    }
    const float slack = block_codes(family, {v}).slack[0];
    float length = 0;
    for (const float x : v) length = std::hypot(length, x);
    const float roundings = 2 * static_cast<float>(family.terms()) * 0x1p-22F * length;
    for (const float move : {0.999F * slack, 1.01F * slack + roundings}) {
      std::vector<float> w = v;
      const float step = move / std::sqrt(static_cast<float>(family.terms()));
      for (std::size_t i = 0; i < 20; ++i)
        w[i] -= std::copysign(step, projection[weakest]) * unit[i][weakest];
      EXPECT_EQ(dense_codes(family, w) == dense_codes(family, v), move < slack) << k << " " << slack;
    }
  }
}

// Projections follow changes of a vector: after any number of sparse changes they give the codes of the sum.
// (Values are small integers, so that sums are exact in any order.)
TEST(SimHash, FollowsSparseChanges) {
  const SimHash family({.shape = {.dimension = 50, .functions = 5, .tables = 6}, .density = 0.2, .seed = 3});
  EXPECT_EQ(family.terms(), 10U);
  HashWorkspace workspace(family.shape());
  std::vector<float> projections(30);
  std::vector<float> sum(50);
  Rng rng(kSeed, Purpose::kTest, 9);
  for (int change = 0; change < 30; ++change) {
    const std::vector<std::uint32_t> index = {static_cast<std::uint32_t>(rng.below(25)),
                                              25 + static_cast<std::uint32_t>(rng.below(25))};
    const std::vector<float> value = {static_cast<float>(rng.below(9)) - 4,
                                      static_cast<float>(rng.below(9)) - 4};
    for (std::size_t i = 0; i < 2; ++i) sum[index[i]] += value[i];
    family.add_projections({.index = index, .value = value}, workspace, projections);
    std::vector<std::uint32_t> codes(6);
    family.codes_of(projections, codes);
    EXPECT_EQ(codes, dense_codes(family, sum)) << change;
  }
}

}  // namespace
}  // namespace gossamer::lsh
