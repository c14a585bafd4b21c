// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/negatives_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "learn/lsh/bucket_block.h"
#include "learn/lsh/tables.h"

namespace gossamer::sparse_engine {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

double share_of_weights(const TablePlan& plan, std::uint64_t labels, std::uint64_t hidden) {
  const auto bytes =
      lsh::most_table_bytes({.rows = labels, .tables = plan.tables, .key_bits = plan.key_bits});
  return static_cast<double>(bytes) / static_cast<double>(labels * hidden * sizeof(float));
}

// Sizes that are left to the program take at most a quarter of the weights, for every size and width, with
// any key given. A given key is kept.
TEST(PlanTables, TakesAtMostAQuarterOfTheWeights) {
  for (const std::uint64_t labels : {130'000ULL, 670'091ULL, 10'000'000ULL}) {
    for (const std::uint64_t hidden : {32ULL, 128ULL, 1024ULL}) {
      for (const sparse::HashKind family : {sparse::HashKind::kSimHash, sparse::HashKind::kWinner}) {
        for (const int given : {0, 1, 2}) {
          HashConfig config{.family = family};
          if (given == 1) config.tables = 10;
          if (given == 2) config.functions = 6;
          const auto planned = plan_tables(config, labels, hidden);
          ASSERT_TRUE(planned.ok());
          const TablePlan& plan = planned->plan;
          EXPECT_LE(share_of_weights(plan, labels, hidden), 0.25) << labels << " " << hidden;
          EXPECT_GE(plan.tables, given == 1 ? 10U : 4U);
          EXPECT_TRUE(given != 2 || plan.functions == 6U);
        }
      }
    }
  }
}

// Claim: sizes that are left to the program give buckets of about 128 rows. There are 50 tables, as SLIDE
// has, or the most that take no more than a quarter of the weights, but four at least.
TEST(PlanTables, BucketsHoldAbout128Rows) {
  std::size_t cut = 0;  // plans with fewer tables
  for (const sparse::HashKind family : {sparse::HashKind::kSimHash, sparse::HashKind::kWinner}) {
    const double bits = family == sparse::HashKind::kWinner ? 3 : 1;  // of a function
    for (const std::uint64_t labels : {1'000ULL, 20'000ULL, 130'000ULL, 670'091ULL, 3'000'000ULL}) {
      for (const std::uint64_t hidden : {64ULL, 128ULL, 1024ULL}) {
        SCOPED_TRACE(::testing::Message()
                     << labels << " labels, " << hidden << " hidden, " << bits << " bits");
        const auto planned = plan_tables({.family = family}, labels, hidden);
        ASSERT_TRUE(planned.ok());
        TablePlan plan = planned->plan;
        const double rows = static_cast<double>(labels) / std::exp2(bits * plan.functions);
        EXPECT_LE(std::abs(std::log2(rows / 128)), bits / 2 + 1e-9) << rows;
        if (plan.tables == 4 || plan.tables == 50) continue;
        ++cut;
        ASSERT_TRUE(plan.tables > 4 && plan.tables < 50) << plan.tables;
        ++plan.tables;
        EXPECT_GT(share_of_weights(plan, labels, hidden), 0.25);
      }
    }
  }
  EXPECT_GT(cut, 1U);
}

// SLIDE's tables fit at H = 128. K = 9, L = 50 of SimHash stay as they are. Six and eight winners of 8 get
// keys folded to 13 bits, and the program says so.
TEST(PlanTables, FoldsLongCodes) {
  const HashConfig delicious{.functions = 9, .tables = 50};
  const auto signs = plan_tables(delicious, 205'443, 128);
  ASSERT_TRUE(signs.ok());
  EXPECT_EQ(signs->plan, (TablePlan{.functions = 9, .tables = 50, .key_bits = 9}));
  EXPECT_THAT(signs->reasons, IsEmpty());
  for (const std::uint32_t functions : {6U, 8U}) {
    const HashConfig amazon{.family = sparse::HashKind::kWinner, .functions = functions, .tables = 50};
    const auto winners = plan_tables(amazon, 670'091, 128);
    ASSERT_TRUE(winners.ok());
    EXPECT_EQ(winners->plan.key_bits, 13U);
    EXPECT_NEAR(share_of_weights(winners->plan, 670'091, 128), 0.249, 0.0005);
    ASSERT_THAT(winners->reasons, SizeIs(1));
    EXPECT_THAT(winners->reasons[0], HasSubstr("lsh.key_bits = 13 of"));
  }
}

// Given sizes that do not fit are refused, with sizes that would.
TEST(PlanTables, RefusesTooMuch) {
  const HashConfig config{.functions = 9, .tables = 50, .key_bits = 9};
  const auto refused = plan_tables(config, 670'091, 32);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message(), HasSubstr("lsh.tables = 12"));
  HashConfig smaller = config;
  smaller.tables = 12;
  EXPECT_TRUE(plan_tables(smaller, 670'091, 32).ok());
  smaller.tables = 13;
  EXPECT_FALSE(plan_tables(smaller, 670'091, 32).ok());
  EXPECT_TRUE(plan_tables(config, 500, 16).ok()) << "small tables may be larger than their weights";
}

// Codes have 32 bits at most. More functions are refused with the most that fit, and so many are planned.
TEST(PlanTables, RefusesLongCodes) {
  HashConfig config{.family = sparse::HashKind::kWinner, .functions = 11};
  const auto refused = plan_tables(config, 670'091, 128);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message(), HasSubstr("lsh.functions"));
  EXPECT_THAT(refused.error().message(), HasSubstr("at most 10"));
  config.functions = 10;
  EXPECT_TRUE(plan_tables(config, 670'091, 128).ok());
  EXPECT_TRUE(plan_tables({.functions = 32}, 670'091, 128).ok());
}

// The planned memory holds the tables of a real layer and what is saved of them. Each worker needs six bytes
// for each label, and four for each row of a block.
TEST(PlanTables, MemoryHoldsTheTables) {
  const TablePlan plan{.functions = 9, .tables = 50, .key_bits = 9};
  const std::uint64_t tables = lsh::most_table_bytes({.rows = 100'000, .tables = 50, .key_bits = 9});
  EXPECT_EQ(table_checkpoint_bytes(plan, 100'000), 100'000U * (50 * 2 + 4));
  EXPECT_GT(table_memory(plan, 100'000, 1), tables + table_checkpoint_bytes(plan, 100'000));
  EXPECT_LT(table_memory(plan, 100'000, 1), 4 * tables);
  const std::uint64_t more = table_memory(plan, 100'000, 17) - table_memory(plan, 100'000, 1);
  const std::uint64_t expected = 16 * (std::uint64_t{100'000} * 6 + lsh::kBlockRows * 4);
  EXPECT_GE(more, expected);
  EXPECT_LT(more, 2 * expected);
}

// What check_negatives() says of the defaults with a change; empty: nothing.
template <class Change>
std::string refusal(const Change& change) {
  TrainConfig config;
  change(config);
  const auto checked = check_negatives(config);
  return checked.ok() ? std::string() : checked.error().message();
}

// Contradictions are refused, each with its key.
TEST(CheckNegatives, RefusesContradictions) {
  EXPECT_EQ(refusal([](TrainConfig&) {}), "");
  EXPECT_THAT(refusal([](TrainConfig& c) { c.train.negatives = sparse::Negatives::kLsh; }),
              HasSubstr("train.negatives"));
  EXPECT_EQ(refusal([](TrainConfig& c) {
              c.train.negatives = sparse::Negatives::kLsh;
              c.train.sampled = 100;
            }),
            "");
  EXPECT_EQ(refusal([](TrainConfig& c) { c.train.hard_negatives = 100; }), "");
  EXPECT_THAT(refusal([](TrainConfig& c) {
                c.train.negatives = sparse::Negatives::kLsh;
                c.train.sampled = 100;
                c.train.hard_negatives = 100;
              }),
              HasSubstr("train.hard_negatives"));
  const auto all_ask = [](TrainConfig& c) {
    c.loss.logq = sparse::LogQ::kExact;
    c.train.hard_negatives = 100;
    c.lsh.queries = c.train.batch - 1;
  };
  EXPECT_THAT(refusal(all_ask), HasSubstr("lsh.queries"));
  EXPECT_EQ(refusal([&](TrainConfig& c) {
              all_ask(c);
              --c.lsh.queries;
            }),
            "");
  EXPECT_EQ(refusal([&](TrainConfig& c) {
              all_ask(c);
              c.train.negatives = sparse::Negatives::kUniform;
              c.train.sampled = 100;
            }),
            "");
  const auto slide = [](TrainConfig& c) {
    c.lsh.sets = sparse::HashSets::kOwn;
    c.train.negatives = sparse::Negatives::kLsh;
    c.train.sampled = 1000;
    c.loss.logq = sparse::LogQ::kNone;
    c.lsh.queries = 256;
  };
  EXPECT_EQ(refusal(slide), "");
  EXPECT_THAT(refusal([&](TrainConfig& c) {
                slide(c);
                c.loss.logq = sparse::LogQ::kAll;
              }),
              HasSubstr("lsh.sets"));
  EXPECT_THAT(refusal([&](TrainConfig& c) {
                slide(c);
                c.lsh.queries = 255;
              }),
              HasSubstr("lsh.sets"));
  EXPECT_THAT(refusal([&](TrainConfig& c) {
                slide(c);
                c.train.negatives = sparse::Negatives::kUniform;
                c.train.hard_negatives = 100;
              }),
              HasSubstr("lsh.sets"));
}

// Claim: a record that is alone in its step is refused if nothing else brings wrong labels.
TEST(CheckNegatives, RefusesABatchWithoutWrongLabels) {
  const auto alone = [](TrainConfig& c) { c.train.batch = 1; };
  EXPECT_THAT(refusal(alone), HasSubstr("train.batch"));
  EXPECT_EQ(refusal([](TrainConfig& c) { c.train.batch = 2; }), "");
  EXPECT_EQ(refusal([&](TrainConfig& c) {
              alone(c);
              c.train.negatives = sparse::Negatives::kUniform;
              c.train.sampled = 100;
            }),
            "");
  EXPECT_EQ(refusal([&](TrainConfig& c) {
              alone(c);
              c.train.hard_negatives = 100;
              c.loss.logq = sparse::LogQ::kNone;
            }),
            "");
}

// Hard negatives begin after their fraction of the run. Negatives by tables alone begin at once.
TEST(HashNegativeOptions, BeginWhereTheyShould) {
  TrainConfig config;
  config.train.hard_negatives = 500;
  config.train.hard_after = 0.7;
  config.lsh.queries = 1000;
  const TablePlan plan{.functions = 7, .tables = 20, .key_bits = 6};
  const auto late = hash_negative_options(config, plan, 1000);
  EXPECT_EQ(late.first_step, 700U);
  EXPECT_EQ(late.found, 500U);
  EXPECT_EQ(late.queries, 256U) << "no more than a batch";
  EXPECT_EQ(late.key_bits, 6U);
  config.train.hard_negatives = 0;
  config.train.negatives = sparse::Negatives::kLsh;
  config.train.sampled = 300;
  const auto always = hash_negative_options(config, plan, 1000);
  EXPECT_EQ(always.first_step, 0U);
  EXPECT_EQ(always.found, 300U);
  EXPECT_EQ(negative_options(config).kind, sparse::Negatives::kLsh) << "found, not drawn";
}

}  // namespace
}  // namespace gossamer::sparse_engine
