// SPDX-License-Identifier: Apache-2.0
//
// Messages, reports and decisions as bytes.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engines/pipeline/fleet/rest_message.h"
#include "engines/pipeline/fleet/step_message.h"

namespace gossamer::pipeline {
namespace {

constexpr Attempt kAttempt{.lineage = 1, .step = StepNumber(7), .epoch = Epoch(3), .tries = 1};

StepRecord odd_record() {
  return {.hash = ~0ULL,
          .squared_norm = std::numeric_limits<double>::quiet_NaN(),
          .root = 0x0102030405060708,
          .loss = -0.0,
          .tokens = 4,
          .records_before = 5,
          .not_finite = kSentZeros,
          .wishes = kWishRest | kWishEnd};
}

RestReport full_report() {
  return {.installed = Epoch(3),
          .lineage = 1,
          .stage = 0U,
          .loads = true,
          .applied = StepNumber(8),
          .last = {{.attempt = kAttempt, .record = odd_record(), .total = 2.5, .skipped = true}},
          .sum = {{.attempt = kAttempt, .record = odd_record(), .refused = true}},
          .roots = {{.step = StepNumber(7), .by_stage = {{0, 9}, {2, ~0ULL}}}},
          .whole = {{.layers = {.first = 2, .last = 4}, .lineage = 1, .step = StepNumber(6), .root = 11}}};
}

PipelineDecision full_decision() {
  PipelineDecision decision{.layout = {.epoch = Epoch(4),
                                       .lineage = 1,
                                       .step = StepNumber(8),
                                       .tries = 1,
                                       .goes_back = true,
                                       .exact = true,
                                       .stages = {{.first = 0, .last = 2}, {.first = 2, .last = 5}},
                                       .members = {{NodeId(2), 0}, {NodeId(3), 1}, {NodeId(5), 0}}},
                            .dealt = {{NodeId(2), 3}, {NodeId(5), 0}}};
  decision.apply = {.attempt = kAttempt, .total = std::numeric_limits<double>::infinity(), .skipped = true};
  return decision;
}

// Claim: every message of a step comes back as it was. Only tensors have a payload.
TEST(StepMessages, ComeBack) {
  const Slices payload{Slice::of(std::string("numbers"))};
  for (const StepMessage& message : std::vector<StepMessage>{{kAttempt, Credit{5}},
                                                             {kAttempt, Credit{0}},
                                                             {kAttempt, Forward{0}},
                                                             {kAttempt, Backward{9}},
                                                             {kAttempt, AllBack{}}}) {
    EXPECT_EQ(read_step_message(write_step_message(message)), message);
    const bool is_tensor =
        std::holds_alternative<Forward>(message.what) || std::holds_alternative<Backward>(message.what);
    EXPECT_EQ(read_step_message(write_step_message(message, payload)).has_value(), is_tensor);
  }
  EXPECT_FALSE(read_step_message({.channel = 11, .body = "", .payload = {}})) << "no attempt";
  EXPECT_FALSE(read_step_message({.channel = 11, .body = "\xff", .payload = {}})) << "no message";
}

// Claim: records come back bit by bit, also numbers that are none. Other sizes are no records.
TEST(StepMessages, Records) {
  const Slice bytes = write_record(odd_record());
  EXPECT_EQ(bytes.size(), kRecordBytes);
  EXPECT_EQ(read_record({bytes.part(0, 7), bytes.part(7, kRecordBytes - 7)}), odd_record());
  EXPECT_FALSE(read_record({bytes.part(0, kRecordBytes - 1)}));
  EXPECT_FALSE(read_record({bytes, bytes.part(0, 1)}));
}

// Claim: reports and decisions come back as they were, empty ones too.
TEST(RestMessages, ComeBack) {
  for (const RestReport& report : {full_report(), RestReport{.installed = Epoch(3)}})
    EXPECT_EQ(read_report(write_report(report), Epoch(3)), report);
  EXPECT_EQ(read_decision(write_decision(full_decision())), full_decision());
  PipelineDecision plain = full_decision();
  plain.apply.reset();
  EXPECT_EQ(read_decision(write_decision(plain)), plain);
}

// Claim: one member gets its part of a decision. Microbatches are dealt in the order of nodes.
TEST(RestMessages, ForOneMember) {
  PipelineDecision decision = full_decision();
  decision.dealt = {{NodeId(2), 3}, {NodeId(5), 4}};
  EXPECT_EQ(for_member(decision, NodeId(5)).microbatches, 4U);
  EXPECT_EQ(for_member(decision, NodeId(3)).microbatches, 0U);
  EXPECT_EQ(first_microbatch(decision, NodeId(2)), 0U);
  EXPECT_EQ(first_microbatch(decision, NodeId(5)), 3U);
}

// Claim: a layout that no coordinator makes is none.
TEST(RestMessages, BadLayouts) {
  const auto is_read = [](auto&& change) {
    PipelineDecision decision = full_decision();
    change(decision);
    return read_decision(write_decision(decision)).has_value();
  };
  EXPECT_TRUE(is_read([](PipelineDecision&) {}));
  EXPECT_FALSE(is_read([](PipelineDecision& one) { one.layout.stages.clear(); }));
  EXPECT_FALSE(is_read([](PipelineDecision& one) { one.layout.stages[0].last = 3; })) << "they overlap";
  EXPECT_FALSE(is_read([](PipelineDecision& one) { one.layout.stages[0].first = 1; })) << "a layer lacks";
  EXPECT_FALSE(is_read([](PipelineDecision& one) { one.layout.stages[1].last = 2; })) << "no layer";
  EXPECT_FALSE(is_read([](PipelineDecision& one) { one.layout.members[NodeId(3)] = 2; })) << "no stage";
  EXPECT_FALSE(is_read([](PipelineDecision& one) { one.dealt[NodeId(3)] = 1; })) << "not in the first stage";
}

// Claim: damaged bytes are read as something or refused, and what is read is written and read alike.
TEST(RestMessages, DamagedBytes) {
  Rng rng(1, Purpose::kTest);
  std::size_t read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string report = write_report(full_report());
    std::string decision = write_decision(full_decision());
    for (std::string* const bytes : {&report, &decision}) {
      for (std::uint64_t n = 1 + rng.below(3); n > 0; --n)
        (*bytes)[rng.below(bytes->size())] = static_cast<char>(rng.below(256));
      bytes->resize(bytes->size() - rng.below(2) * rng.below(bytes->size()));
    }
    if (const auto one = read_report(report, Epoch(3)); one) {
      const auto twice = read_report(write_report(*one), Epoch(3));
      ASSERT_TRUE(twice.has_value());
      EXPECT_TRUE(twice->sum == one->sum && twice->roots == one->roots && twice->whole == one->whole);
      ++read;
    }
    if (const auto one = read_decision(decision); one) {
      const auto twice = read_decision(write_decision(*one));
      ASSERT_TRUE(twice.has_value());
      EXPECT_EQ(write_decision(*twice), write_decision(*one)) << "numbers that are none equal nothing";
      ++read;
    }
  }
  EXPECT_GT(read, 1000U);
}

}  // namespace
}  // namespace gossamer::pipeline
