// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/record.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace gossamer::pipeline {
namespace {

using Row = RecordsFit::Row;

constexpr std::uint64_t kTokensOfStep = 60;

// Two holders of the first stage, three of the second.
Stages two_stages() {
  return {{NodeId(2), 0}, {NodeId(3), 0}, {NodeId(4), 1}, {NodeId(5), 1}, {NodeId(6), 1}};
}

Records good_records() {
  Records records;
  for (const auto& [node, stage] : two_stages()) {
    records[node] = {.hash = 10 + stage,
                     .squared_norm = 2.0 + stage,
                     .root = 20 + stage,
                     .loss = stage == 1 ? 0.5 : 0,
                     .tokens = stage == 1 ? 20U : 30U,
                     .records_before = 7};
  }
  return records;
}

RecordsFit look(const Records& records) { return look_at(records, two_stages(), kTokensOfStep); }

// Claim: records of all members of a step that went well fit, and so do those of any of them.
TEST(Records, FitAndGoOnFitting) {
  const Records all = good_records();
  EXPECT_EQ(look(all), RecordsFit{});
  for (unsigned mask = 0; mask < 32; ++mask) {
    Records some;
    for (const auto& [node, record] : all) {
      if ((mask >> (node.value - 2) & 1U) != 0) some.emplace(node, record);
    }
    EXPECT_EQ(look(some), RecordsFit{}) << mask;
  }
  EXPECT_EQ(total_norm(all, two_stages()), 5);
}

// Claim: a member that differs from more than half of its stage in hash, norm or root is named, and so is one
// that has seen other records before than more than half of all.
TEST(Records, NamesThoseThatDiffer) {
  const std::vector<std::function<void(StepRecord&)>> changes{
      [](StepRecord& one) { one.hash = 1; }, [](StepRecord& one) { one.squared_norm = -0.0; },
      [](StepRecord& one) { one.root = 1; }, [](StepRecord& one) { one.records_before = 1; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    for (const auto& [node, stage] : two_stages()) {
      Records records = good_records();
      changes[i](records[node]);
      const bool named = stage == 1 || i == 3;
      EXPECT_EQ(look(records), named ? (RecordsFit{.row = Row::kDiffer, .named = {node}})
                                     : (RecordsFit{.row = Row::kDispute, .named = {NodeId(2), NodeId(3)}}))
          << i << " of node " << node.value;
    }
  }
  Records three = good_records();
  three[NodeId(4)].hash = 1;
  three[NodeId(5)].hash = 2;
  EXPECT_EQ(look(three), (RecordsFit{.row = Row::kDispute, .named = {NodeId(4), NodeId(5), NodeId(6)}}));
  three[NodeId(3)].records_before = 8;
  EXPECT_EQ(look(three), (RecordsFit{.row = Row::kDiffer, .named = {NodeId(3)}}))
      << "what is clear goes first";
}

// Claim: each stage has to add the tokens of the step. Too many are too many, also if a member is gone.
TEST(Records, CountTokens) {
  for (const auto& [node, stage] : two_stages()) {
    for (const std::uint64_t tokens : {std::uint64_t{0}, std::uint64_t{31}, std::uint64_t{0} - 40}) {
      Records records = good_records();
      records[node].tokens = tokens;
      EXPECT_EQ(look(records).row, Row::kTokens) << node.value << " says " << tokens;
    }
  }
  Records without = good_records();
  without.erase(NodeId(4));
  EXPECT_EQ(look(without).row, Row::kFit);
  without[NodeId(5)].tokens = 41;
  EXPECT_EQ(look(without).row, Row::kTokens);
  EXPECT_EQ(look_at(without, two_stages(), {}).row, Row::kFit) << "not looked at";
  Records around = good_records();
  around[NodeId(2)].tokens -= 31;  // below 0, so that the sum of both is right again
  around[NodeId(3)].tokens += 31;
  EXPECT_EQ(look(around).row, Row::kTokens);
}

// Claim: a norm, a loss or a total that is not finite is found, and so are zeros in place of numbers. Members
// that agree on NaN have no dispute.
TEST(Records, AreFinite) {
  const double infinite = std::numeric_limits<double>::infinity();
  const double none = std::numeric_limits<double>::quiet_NaN();
  const double large = std::numeric_limits<double>::max();
  const auto with = [](const std::function<void(StepRecord&, std::uint32_t)>& change) {
    Records records = good_records();
    for (auto& [node, record] : records) change(record, two_stages().at(node));
    return look(records).row;
  };
  for (const double bad : {infinite, none}) {
    EXPECT_EQ(with([&](StepRecord& one, std::uint32_t) { one.squared_norm = bad; }), Row::kNotFinite);
    EXPECT_EQ(with([&](StepRecord& one, std::uint32_t) { one.loss = bad; }), Row::kNotFinite);
  }
  EXPECT_EQ(with([&](StepRecord& one, std::uint32_t) { one.squared_norm = large; }), Row::kNotFinite);
  EXPECT_EQ(with([&](StepRecord& one, std::uint32_t stage) { one.not_finite = stage == 0 ? 0 : kSentZeros; }),
            Row::kNotFinite);
}

// Claim: the hash of records covers each field and each member, and the bits of numbers rather than values.
TEST(Records, HashCoversAll) {
  const std::vector<std::function<void(StepRecord&)>> changes{
      [](StepRecord& one) { ++one.hash; },         [](StepRecord& one) { one.squared_norm = 9; },
      [](StepRecord& one) { ++one.root; },         [](StepRecord& one) { one.loss = -0.0; },
      [](StepRecord& one) { ++one.tokens; },       [](StepRecord& one) { ++one.records_before; },
      [](StepRecord& one) { one.not_finite = 1; }, [](StepRecord& one) { one.wishes = kWishRest; }};
  const Records good = good_records();
  EXPECT_EQ(hash_of(good), hash_of(good_records()));
  for (const auto& change : changes) {
    Records records = good_records();
    change(records[NodeId(2)]);
    EXPECT_NE(records, good);
    EXPECT_NE(hash_of(records), hash_of(good));
  }
  Records fewer = good_records();
  fewer.erase(NodeId(6));
  EXPECT_NE(hash_of(fewer), hash_of(good));
  fewer[NodeId(7)] = good.at(NodeId(6));
  EXPECT_NE(hash_of(fewer), hash_of(good));
  EXPECT_EQ(wishes_of(good), 0);
  Records wish = good_records();
  wish[NodeId(2)].wishes = kWishRest;
  wish[NodeId(6)].wishes = kWishCheckpoint;
  EXPECT_EQ(wishes_of(wish), kWishRest | kWishCheckpoint);
}

}  // namespace
}  // namespace gossamer::pipeline
