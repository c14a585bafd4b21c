// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/bucket_query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/test_counting_new.h"
#include "host/sim/compute.h"
#include "learn/lsh/simhash.h"
#include "learn/lsh/test_random_rows.h"

namespace gossamer::lsh {
namespace {

// The candidates that a look at every row gives.
std::vector<Candidate> model_answer(const Tables& tables, std::span<const std::uint32_t> codes,
                                    const BucketQueryOptions& options) {
  const auto keys = all_keys(tables);
  std::vector<Candidate> found;
  for (std::uint32_t r = 0; r < tables.rows(); ++r) {
    std::uint32_t support = 0;
    for (std::size_t t = 0; t < codes.size(); ++t) support += keys[t][r] == tables.key_of(codes[t]) ? 1 : 0;
    if (support >= options.min_tables) found.push_back({.row = r, .tables = support});
  }
  std::ranges::sort(found, {},
                    [](const Candidate& c) { return std::pair(-static_cast<int>(c.tables), c.row); });
  found.resize(std::min(found.size(), options.limit));
  return found;
}

std::vector<Candidate> copy(std::span<const Candidate> answer) { return {answer.begin(), answer.end()}; }

// Answers are the same as from a look at every row. The best supported come first, ties by row. There are
// never more than the limit, and none is below the least support. So it is with rows in overlays, across row
// blocks, and one question after the other.
TEST(BucketQuery, AnswersLikeALookAtEveryRow) {
  const SimHash family(
      {.shape = {.dimension = 12, .functions = 5, .tables = 9}, .seed = 3, .isa = kernels::best_isa()});
  host::SimCompute compute({.workers = 2});
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{3000}, kBlockRows + 70}) {
    RandomRows rows(count, 12, count);
    Tables tables(family, count, {});
    tables.build(rows.view(), compute);
    std::vector<std::uint32_t> changed;
    for (std::uint32_t r = 0; r < count; r += 40) {
      tables.note_change(r, rows.move(r, 1));
      changed.push_back(r);
    }
    tables.update(rows.view(), changed, compute);
    for (const std::size_t limit : {std::size_t{1}, std::size_t{20}, std::size_t{1000000}}) {
      for (const std::size_t least : {std::size_t{1}, std::size_t{3}, std::size_t{9}, std::size_t{10}}) {
        const BucketQueryOptions options = {.limit = limit, .min_tables = least};
        BucketQuery query(tables, options);
        HashWorkspace workspace(family.shape());
        std::vector<std::uint32_t> codes(9);
        for (int i = 0; i < 3; ++i) {
          std::vector<float> h(12);
          for (float& x : h) x = rows.rng().normal();
          family.hash_dense(h, workspace, codes);
          const auto want = model_answer(tables, codes, options);
          EXPECT_EQ(copy(query.find(h)), want) << count << " " << limit << " " << least;
          EXPECT_EQ(copy(query.find(nonzeros(h, workspace))), want);
          EXPECT_EQ(copy(query.find_codes(codes)), want);
        }
      }
    }
  }
}

// A row finds itself first, supported by all tables.
TEST(BucketQuery, FindsTheRowItself) {
  const SimHash family({.shape = {.dimension = 20, .functions = 8, .tables = 15}, .seed = 3});
  host::SimCompute compute({.workers = 2});
  RandomRows rows(500, 20, 1);
  Tables tables(family, 500, {});
  tables.build(rows.view(), compute);
  BucketQuery query(tables, {});
  for (std::uint32_t r = 0; r < 500; r += 7) {
    const auto answer = query.find(rows.row(r));
    ASSERT_FALSE(answer.empty()) << r;
    EXPECT_EQ(answer[0], (Candidate{.row = r, .tables = 15})) << r;
  }
}

// Rows that all share one bucket of two tables.
struct OneBucket {
  explicit OneBucket(std::size_t count) : rows(count, 8, 1), tables(family, count, {}) {
    for (std::size_t r = 0; r < count; ++r) std::ranges::fill(rows.row(r), 1.0F);
    tables.build(rows.view(), compute);
    // Some rows come through the overlay.
    for (std::uint32_t r = 3; r < count; r += 31) {
      tables.note_change(r, 10);
      changed.push_back(r);
    }
    tables.update(rows.view(), changed, compute);
  }
  host::SimCompute compute{{.workers = 1}};
  SimHash family{{.shape = {.dimension = 8, .functions = 3, .tables = 2}, .seed = 3}};
  RandomRows rows;
  Tables tables;
  std::vector<std::uint32_t> changed;
};

// First in, first out: of a crowded bucket a query sees the last rows, of any other bucket all rows.
TEST(BucketQuery, FifoKeepsTheLast) {
  OneBucket all(500);
  BucketQuery query(all.tables, {.cap = BucketCap::kFifo, .cap_rows = 40});
  std::vector<Candidate> want;
  for (std::uint32_t r = 460; r < 500; ++r) want.push_back({.row = r, .tables = 2});
  EXPECT_EQ(copy(query.find(all.rows.row(0))), want);
  EXPECT_EQ(query.visited(), 80U);
  BucketQuery wide(all.tables, {.cap = BucketCap::kFifo, .cap_rows = 500});
  EXPECT_EQ(wide.find(all.rows.row(0)).size(), 500U);
}

// A reservoir is a uniform choice: over seeds each row is in it as often as its size says (five standard
// errors). A table's choice has the exact size and does not repeat a row. The same question has the same
// answer.
TEST(BucketQuery, ReservoirIsUniform) {
  OneBucket all(60);
  constexpr std::size_t kCap = 12;
  constexpr int kSeeds = 4000;
  std::vector<double> seen(60);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    BucketQuery query(all.tables, {.cap = BucketCap::kReservoir, .cap_rows = kCap, .seed = seed});
    const auto answer = copy(query.find(all.rows.row(0)));
    std::size_t support = 0;
    for (const Candidate& c : answer) {
      seen[c.row] += c.tables;
      support += c.tables;
      ASSERT_LE(c.tables, 2U);
    }
    ASSERT_EQ(support, 2 * kCap);
    ASSERT_EQ(copy(query.find(all.rows.row(0))), answer);
  }
  constexpr double kShare = static_cast<double>(kCap) / 60;
  for (const double s : seen) {
    EXPECT_NEAR(s / (2 * kSeeds), kShare, 5 * std::sqrt(kShare * (1 - kShare) / (2 * kSeeds)));
  }
}

// A sample of the buckets holds different rows, each supported by a table, as many as asked for or all there
// are. It reads whole buckets in the order of tables that was drawn. The same order gives the same answer,
// another one other rows. A question by support that follows sees none of it.
TEST(BucketQuery, SamplesTablesInRandomOrder) {
  const SimHash family({.shape = {.dimension = 12, .functions = 5, .tables = 9}, .seed = 3});
  host::SimCompute compute({.workers = 2});
  RandomRows rows(3000, 12, 4);
  Tables tables(family, 3000, {});
  tables.build(rows.view(), compute);
  const auto keys = all_keys(tables);
  HashWorkspace workspace(family.shape());
  std::vector<std::uint32_t> codes(9);
  std::size_t differing = 0;
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    family.hash_dense(rows.row(trial), workspace, codes);
    const auto all = model_answer(tables, codes, {.limit = 3000});
    for (const std::size_t limit : {std::size_t{1}, std::size_t{150}, std::size_t{3000}}) {
      BucketQuery query(tables, {.limit = limit});
      Rng order(7, Purpose::kTableOrder, trial);
      const auto answer = copy(query.sample_codes(codes, order));
      EXPECT_EQ(answer.size(), std::min(limit, all.size()));
      std::set<std::uint32_t> found;
      for (const Candidate& c : answer) {
        EXPECT_TRUE(found.insert(c.row).second) << c.row;
        EXPECT_TRUE(std::ranges::any_of(all, [&](const Candidate& a) { return a.row == c.row; })) << c.row;
      }
      // One table's rows come after the other's, in the order drawn.
      Rng same(7, Purpose::kTableOrder, trial);
      std::vector<std::size_t> left = {0, 1, 2, 3, 4, 5, 6, 7, 8};
      std::vector<std::uint32_t> want;
      while (!left.empty()) {
        const std::size_t drawn = same.below(left.size());
        const std::size_t table = left[drawn];
        left[drawn] = left.front();
        left.erase(left.begin());
        for (std::uint32_t row = 0; row < 3000; ++row) {
          if (keys[table][row] == tables.key_of(codes[table]) && std::ranges::count(want, row) == 0)
            want.push_back(row);
        }
      }
      want.resize(std::min(limit, want.size()));
      EXPECT_TRUE(std::ranges::equal(answer, want, {}, &Candidate::row));
      Rng again(7, Purpose::kTableOrder, trial);
      EXPECT_EQ(copy(query.sample_codes(codes, again)), answer);
      Rng other(8, Purpose::kTableOrder, trial);
      differing += copy(query.sample_codes(codes, other)) == answer ? 0 : 1;
      EXPECT_EQ(copy(query.find_codes(codes)), model_answer(tables, codes, {.limit = limit}));
    }
  }
  EXPECT_GT(differing, 20U);
}

// Questions allocate nothing.
TEST(BucketQuery, AllocatesNothing) {
  const SimHash family({.shape = {.dimension = 20, .functions = 4, .tables = 15}, .seed = 3});
  host::SimCompute compute({.workers = 1});
  RandomRows rows(2000, 20, 1);
  Tables tables(family, 2000, {});
  tables.build(rows.view(), compute);
  for (const BucketCap cap : {BucketCap::kNone, BucketCap::kFifo, BucketCap::kReservoir}) {
    BucketQuery query(tables, {.cap = cap, .cap_rows = 10});
    const std::uint64_t before = allocation_count();
    std::size_t found = 0;
    for (std::uint32_t r = 0; r < 50; ++r) found += query.find(rows.row(r)).size();
    EXPECT_EQ(allocation_count() - before, 0U);
    EXPECT_GT(found, 50U);
  }
}

}  // namespace
}  // namespace gossamer::lsh
