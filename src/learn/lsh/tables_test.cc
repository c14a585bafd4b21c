// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "host/posix/compute.h"
#include "host/sim/compute.h"
#include "learn/lsh/simhash.h"
#include "learn/lsh/test_random_rows.h"
#include "learn/lsh/winner_hash.h"

namespace gossamer::lsh {
namespace {

std::vector<std::vector<std::uint32_t>> built_keys(const HashFamily& family, const RowsView& view,
                                                   host::Compute& compute) {
  Tables tables(family, view.rows, {});
  tables.build(view, compute);
  return all_keys(tables);
}

// After a build every row has the key of its code in every table, also across blocks; longer codes are
// folded.
TEST(Tables, HoldEveryRowByItsCode) {
  const WinnerHash family(
      {.shape = {.dimension = 16, .functions = 8, .tables = 3}, .seed = 2, .isa = kernels::best_isa()});
  ASSERT_EQ(family.code_bits(), 24U);
  host::SimCompute compute({.workers = 2});
  RandomRows rows(kBlockRows + 200, 16, 1);
  HashWorkspace workspace(family.shape());
  std::vector<std::uint32_t> codes(3);
  for (const unsigned bits : {7U, 20U}) {
    Tables tables(family, kBlockRows + 200, {.key_bits = bits});
    tables.build(rows.view(), compute);
    const auto keys = all_keys(tables);
    std::set<std::uint32_t> seen;
    for (std::size_t r = 0; r < tables.rows(); r += 3) {
      family.hash_dense(rows.row(r), workspace, codes);
      for (std::size_t t = 0; t < 3; ++t) {
        ASSERT_EQ(keys[t][r], tables.key_of(codes[t])) << r;
        ASSERT_LT(keys[t][r], 1U << bits);
        seen.insert(keys[t][r]);
      }
    }
    EXPECT_GT(seen.size(), bits == 7 ? 127U : 10000U);
  }
}

// The content does not depend on the number of workers, their order or whether they are threads; after a
// build and after an update.
TEST(Tables, DoNotDependOnWorkers) {
  const SimHash family({.shape = {.dimension = 16, .functions = 7, .tables = 5}, .seed = 2});
  std::vector<std::vector<std::vector<std::uint32_t>>> built;
  std::vector<std::vector<std::vector<std::uint32_t>>> updated;
  const auto run = [&](host::Compute& compute) {
    RandomRows rows(3000, 16, 1);
    Tables tables(family, 3000, {});
    tables.build(rows.view(), compute);
    built.push_back(all_keys(tables));
    std::vector<std::uint32_t> changed;
    for (std::uint32_t r = 0; r < 3000; r += 50) {
      tables.note_change(r, rows.move(r, 1));
      changed.push_back(r);
    }
    tables.update(rows.view(), changed, compute);
    updated.push_back(all_keys(tables));
  };
  for (const int workers : {1, 2, 3, 7}) {
    host::SimCompute compute({.workers = workers, .seed = static_cast<std::uint64_t>(workers)});
    run(compute);
  }
  auto threads = host::PosixCompute::create(3);
  ASSERT_TRUE(threads.ok());
  run(**threads);
  for (std::size_t i = 1; i < built.size(); ++i) {
    EXPECT_EQ(built[i], built[0]);
    EXPECT_EQ(updated[i], updated[0]);
  }
  EXPECT_NE(built[0], updated[0]);
}

// Without tolerance the tables equal a fresh build after any sequence of changes. These are small and large,
// noted in one or several moves, of few rows (overlay) and of many (sorted anew). Not every changed row is
// hashed.
TEST(Tables, UpdatesEqualARebuild) {
  const SimHash sim({.shape = {.dimension = 24, .functions = 6, .tables = 4}, .seed = 2});
  const WinnerHash winner({.shape = {.dimension = 24, .functions = 4, .tables = 4}, .window = 4, .seed = 2});
  for (const HashFamily* family :
       {static_cast<const HashFamily*>(&sim), static_cast<const HashFamily*>(&winner)}) {
    constexpr std::size_t kRows = 4000;
    host::SimCompute compute({.workers = 3});
    RandomRows rows(kRows, 24, 5);
    Tables tables(*family, kRows, {});
    tables.build(rows.view(), compute);
    std::size_t changes = 0;
    std::size_t hashed = 0;
    std::size_t sorted = 0;
    std::size_t overlaid = 0;
    for (int round = 0; round < 25; ++round) {
      std::vector<std::uint32_t> changed;
      const std::size_t count = round % 5 == 4 ? 600 : 40;
      for (std::size_t i = 0; i < count; ++i) {
        const auto r = static_cast<std::uint32_t>(rows.rng().below(kRows));
        const float scale = std::pow(10.0F, -4 * rows.rng().uniform());
        for (std::size_t m = 0; m < 1 + i % 3; ++m) tables.note_change(r, rows.move(r, scale));
        changed.push_back(r);
      }
      const UpdateReport report = tables.update(rows.view(), changed, compute);
      changes += std::set<std::uint32_t>(changed.begin(), changed.end()).size();
      hashed += report.hashed;
      sorted += report.sorted_blocks;
      overlaid += report.sorted_blocks == 0 && report.hashed > 0 ? 1 : 0;
      ASSERT_EQ(all_keys(tables), built_keys(*family, rows.view(), compute)) << round;
    }
    EXPECT_LT(hashed, changes * 9 / 10);
    EXPECT_GT(hashed, changes / 10);
    EXPECT_GE(sorted, 3U);
    EXPECT_GE(overlaid, 15U);
  }
}

// With tolerance T only rows within T times their hashed length of their hashed place differ from a fresh
// build. Every row is within its bound, and far fewer rows are hashed.
TEST(Tables, ToleranceBoundsTheDifference) {
  const SimHash family({.shape = {.dimension = 24, .functions = 6, .tables = 4}, .seed = 2});
  constexpr std::size_t kRows = 2000;
  constexpr double kTolerance = 0.1;
  host::SimCompute compute({.workers = 2});
  RandomRows rows(kRows, 24, 6);
  Tables tables(family, kRows, {.tolerance = kTolerance});
  tables.build(rows.view(), compute);
  RandomRows as_hashed = rows;
  std::size_t changes = 0;
  std::size_t hashed = 0;
  std::size_t differing = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint32_t> changed;
    for (std::size_t i = 0; i < 500; ++i) {
      const auto r = static_cast<std::uint32_t>(rows.rng().below(kRows));
      tables.note_change(r, rows.move(r, 0.03F));
      changed.push_back(r);
    }
    for (const std::uint32_t r : changed) {
      if (tables.due(r)) std::ranges::copy(rows.row(r), as_hashed.row(r).begin());
    }
    changes += changed.size();
    hashed += tables.update(rows.view(), changed, compute).hashed;
    const auto keys = all_keys(tables);
    const auto fresh = built_keys(family, rows.view(), compute);
    EXPECT_EQ(keys, built_keys(family, as_hashed.view(), compute));
    for (std::size_t r = 0; r < kRows; ++r) {
      double moved = 0;
      double length = 0;
      for (std::size_t i = 0; i < 24; ++i) {
        const auto was = static_cast<double>(as_hashed.row(r)[i]);
        length += was * was;
        moved += std::pow(static_cast<double>(rows.row(r)[i]) - was, 2);
      }
      bool same = true;
      for (std::size_t t = 0; t < 4; ++t) same = same && keys[t][r] == fresh[t][r];
      differing += same ? 0 : 1;
      ASSERT_TRUE(same || moved <= kTolerance * kTolerance * length) << r;
    }
  }
  EXPECT_GT(differing, 100U);
  EXPECT_LT(hashed, changes / 2);
  EXPECT_GT(hashed, 100U);
}

// Rows that are not named, or not due, are left alone; a change of unknown length makes a row due.
TEST(Tables, HashOnlyDueRows) {
  const SimHash family({.shape = {.dimension = 8, .functions = 3, .tables = 2}, .seed = 2});
  host::SimCompute compute({.workers = 1});
  RandomRows rows(100, 8, 7);
  Tables tables(family, 100, {});
  tables.build(rows.view(), compute);
  const std::vector<std::uint32_t> all = {5, 6, 7, 5};
  EXPECT_EQ(tables.update(rows.view(), all, compute).hashed, 0U);
  for (float& x : rows.row(5)) x = -x;
  for (float& x : rows.row(9)) x = -x;
  tables.note_change(5, kInfinity);
  tables.note_change(9, kInfinity);
  const auto before = all_keys(tables);
  EXPECT_EQ(tables.update(rows.view(), all, compute).hashed, 1U);
  const auto after = all_keys(tables);
  for (std::size_t t = 0; t < 2; ++t) {
    for (std::size_t r = 0; r < 100; ++r) EXPECT_EQ(before[t][r] == after[t][r], r != 5) << r;
  }
  EXPECT_EQ(tables.update(rows.view(), {}, compute).hashed, 0U);
}

// Saved tables go on elsewhere as if nothing had happened: same keys, same rows due, and the same after
// further changes. So it is with rows in overlays and over several row blocks.
TEST(Tables, SavedTablesGoOn) {
  const SimHash family({.shape = {.dimension = 8, .functions = 6, .tables = 3}, .seed = 2});
  constexpr std::size_t kRows = kBlockRows + 500;
  host::SimCompute compute({.workers = 2});
  RandomRows rows(kRows, 8, 9);
  Tables first(family, kRows, {.tolerance = 0.05});
  first.build(rows.view(), compute);
  const auto change = [&](Tables& tables, RandomRows& own) {
    std::vector<std::uint32_t> changed;
    for (std::uint32_t r = 0; r < kRows; r += 37) {
      tables.note_change(r, own.move(r, 0.05F));
      changed.push_back(r);
    }
    return changed;
  };
  first.update(rows.view(), change(first, rows), compute);
  change(first, rows);
  std::vector<std::uint16_t> keys(3 * kRows);
  std::vector<float> allowances(kRows);
  first.save(keys, allowances);
  Tables second(family, kRows, {.tolerance = 0.05});
  second.restore(keys, allowances);
  EXPECT_EQ(all_keys(second), all_keys(first));
  RandomRows same = rows;
  const auto changed = change(first, rows);
  EXPECT_EQ(change(second, same), changed);
  std::size_t due = 0;
  for (std::size_t r = 0; r < kRows; ++r) {
    ASSERT_EQ(first.due(r), second.due(r)) << r;
    due += first.due(r) ? 1 : 0;
  }
  EXPECT_GT(due, 100U);
  EXPECT_EQ(first.update(rows.view(), changed, compute).hashed,
            second.update(same.view(), changed, compute).hashed);
  EXPECT_EQ(all_keys(second), all_keys(first));
}

// A family with codes of any length, made from a row's number, which is its only coordinate.
class NumberedRows final : public HashFamily {
 public:
  NumberedRows(std::size_t tables, std::size_t code_bits)
      : HashFamily({.dimension = 1, .functions = 1, .tables = tables}, code_bits) {}
  void hash_block(std::span<const float* const> rows, HashWorkspace&, const BlockCodes& out) const override {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::uint32_t t = 0; t < shape().tables; ++t)
        out.codes[t * kernels::kCodeRows + r] = code(*rows[r], t);
      out.slack[r] = 0;
    }
  }
  void hash(const data::SparseRow& v, HashWorkspace&, std::span<std::uint32_t> codes) const override {
    for (std::uint32_t t = 0; t < shape().tables; ++t) codes[t] = code(v.value[0], t);
  }

 private:
  [[nodiscard]] std::uint32_t code(float number, std::uint32_t table) const {
    return ((std::bit_cast<std::uint32_t>(number) + table) * 0x9E3779B1U) >> (32 - code_bits());
  }
};

// The tables over Amazon-670K's output layer, 670,091 rows with L = 50, take a fraction of the weights:
// - codes of up to 13 bits, H = 128: less than a quarter, with the largest overlay too (SimHash with K = 9:
//   about a fifth);
// - codes of 18 bits (WinnerHash with K = 6), H = 128: less than a third;
// - codes of 18 bits, from H = 176 on: less than a quarter.
//
// SLIDE takes 7.0 GB there.
TEST(Tables, TakeAFractionOfTheWeights) {
  constexpr std::size_t kRows = 670091;
  host::SimCompute compute({.workers = 1});
  std::vector<float> numbers(kRows);
  for (std::size_t r = 0; r < kRows; ++r) numbers[r] = static_cast<float>(r);
  const RowsView view = {.data = numbers.data(), .rows = kRows, .stride = 1};
  std::vector<std::uint32_t> changed;
  for (std::uint32_t r = 0; r < kRows; r += 17) changed.push_back(r);
  struct Case {
    std::size_t code_bits;
    double built;
    double updated;
    double width;
  };
  for (const Case& c : {Case{9, 0.21, 0.25, 128}, Case{13, 0.24, 0.25, 128}, Case{18, 0.33, 0.35, 128},
                        Case{18, 0.25, 0.26, 176}}) {
    const NumberedRows family(50, c.code_bits);
    Tables tables(family, kRows, {});
    const double weights = static_cast<double>(kRows) * c.width * sizeof(float);
    tables.build(view, compute);
    EXPECT_LT(static_cast<double>(tables.bytes()) / weights, c.built) << c.code_bits;
    const UpdateReport report = tables.update(view, changed, compute);
    EXPECT_EQ(report.hashed, changed.size());
    EXPECT_EQ(report.sorted_blocks, 0U);
    EXPECT_LT(static_cast<double>(tables.bytes()) / weights, c.updated) << c.code_bits;
    // The bound that memory is planned by holds, and is not far off.
    const auto most = static_cast<double>(
        most_table_bytes({.rows = kRows, .tables = 50, .key_bits = static_cast<unsigned>(c.code_bits)}));
    EXPECT_LE(static_cast<double>(tables.bytes()), most);
    EXPECT_GT(static_cast<double>(tables.bytes()), 0.95 * most);
  }
}

}  // namespace
}  // namespace gossamer::lsh
