// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_exchanges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engines/sparse/fleet/step/step_order.h"

namespace gossamer::sparse_engine {
namespace {

using Kind = ExchangeName::Kind;

// Claim: every name has a number of its own, and the number gives the name again.
TEST(ExchangeName, HasANumberOfItsOwn) {
  for (const std::uint64_t rounds : {1U, 4U, 8U}) {
    std::map<std::uint64_t, ExchangeName> names;
    const auto add = [&](const ExchangeName& name) {
      const cluster::OperationId number = pack(name, rounds);
      EXPECT_EQ(unpack(number, rounds), name);
      EXPECT_TRUE(names.emplace(number.value, name).second) << number.value;
    };
    for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
      for (std::uint64_t round = 0; round < rounds; ++round)
        add({.kind = Kind::kRound, .step = StepNumber(step), .round = round});
      for (std::uint64_t part = 0; part < kSnapshotExchanges; ++part)
        add({.kind = Kind::kSnapshot, .step = StepNumber(step), .round = part});
    }
    for (std::uint64_t stage = 0; stage < 10; ++stage)
      add({.kind = Kind::kStage, .step = {}, .round = stage});
    add({.kind = Kind::kHalted, .step = {}, .round = 0});
  }
}

// Claim: numbers are those of docs/protocols/sparse-step.md.
TEST(ExchangeName, HasTheNumberOfThePage) {
  EXPECT_EQ(pack({.kind = Kind::kRound, .step = StepNumber(7), .round = 2}, 4).value, 30U);
  EXPECT_EQ(pack({.kind = Kind::kStage, .step = {}, .round = 3}, 4).value, (1ULL << 62) + 3);
  EXPECT_EQ(pack({.kind = Kind::kSnapshot, .step = StepNumber(5), .round = 2}, 4).value, (1ULL << 63) + 17);
  EXPECT_EQ(pack({.kind = Kind::kHalted, .step = {}, .round = 0}, 4).value, (1ULL << 63) - 1);
}

// Claim: a round follows another one only if its member has the result of that by then, in the order of steps
// with and without staleness. Each round is followed by one that is at most two steps later.
TEST(ExchangeName, RoundsFollowTheOrderOfSteps) {
  constexpr std::size_t kRounds = 4;
  for (const std::size_t staleness : {0U, 1U}) {
    StepOrder order(kRounds, staleness);
    order.restart(StepNumber(10));
    std::vector<ExchangeName> begun;
    std::vector<ExchangeName> has;
    while (order.next_step() < StepNumber(20)) {
      const auto item = order.next(true).value();
      order.computed(item);
      ExchangeName now{.step = item.step, .round = item.round};
      if (item.round > 0) has.push_back({.step = item.step, .round = item.round - 1});
      if (item.round + 1 == kRounds) continue;  // nothing is exchanged
      for (const ExchangeName& one : begun) {
        EXPECT_TRUE(!follows(one, now) || std::ranges::find(has, one) != has.end())
            << one.step.value << "." << one.round << " " << now.step.value << "." << now.round;
      }
      begun.push_back(now);
    }
    for (const ExchangeName& one : begun) {
      if (one.step > StepNumber(16)) continue;
      EXPECT_TRUE(std::ranges::any_of(begun,
                                      [&](const ExchangeName& later) {
                                        return follows(one, later) && later.step.value <= one.step.value + 2;
                                      }))
          << one.step.value << "." << one.round;
    }
  }
}

// Claim: snapshots and stages of a recovery follow each other by their numbers, and nothing else.
TEST(ExchangeName, SnapshotsFollowEachOther) {
  const auto snapshot = [](std::uint64_t step, std::uint64_t part) {
    return ExchangeName{.kind = Kind::kSnapshot, .step = StepNumber(step), .round = part};
  };
  EXPECT_TRUE(follows(snapshot(20, 0), snapshot(20, 1)));
  EXPECT_TRUE(follows(snapshot(20, 1), snapshot(30, 0)));
  EXPECT_FALSE(follows(snapshot(20, 1), snapshot(20, 1)));
  EXPECT_FALSE(follows(snapshot(30, 0), snapshot(20, 2)));
  const auto stage = [](std::uint64_t number) { return ExchangeName{.kind = Kind::kStage, .round = number}; };
  EXPECT_TRUE(follows(stage(1), stage(2)));
  EXPECT_FALSE(follows(stage(2), stage(1)));
  EXPECT_FALSE(follows(stage(1), snapshot(20, 2)));
  EXPECT_FALSE(follows(snapshot(20, 0), stage(2)));
  EXPECT_FALSE(follows({.kind = Kind::kHalted}, snapshot(20, 2)));
  EXPECT_FALSE(follows({.kind = Kind::kHalted}, {.kind = Kind::kHalted}));
}

}  // namespace
}  // namespace gossamer::sparse_engine
