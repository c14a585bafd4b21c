// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_workload.h"

#include <gossamer/check.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gossamer::check {
namespace {

constexpr CheckConfig kConfig{.things = 6, .elements = 16};

// A member's report as a correct engine makes it. Tests then spoil it.
check::Report report(std::uint64_t installed, std::uint64_t step, const std::vector<std::uint64_t>& things) {
  const CheckNumbers numbers(kConfig);
  check::Report report;
  report.set_installed(installed);
  report.set_step(step);
  for (const std::uint64_t thing : things) {
    check::Report::Held& held = *report.add_held();
    held.set_thing(thing);
    held.set_chain(numbers.chain(thing, StepNumber(step)));
  }
  return report;
}

struct Judgement {
  cluster::Decision decision;
  check::Decision read;
  std::optional<Error> failure;
};

Judgement judge(const std::map<std::uint64_t, std::string>& reports,
                std::optional<StepNumber> committed = std::nullopt) {
  CheckWorkload workload(kConfig);
  std::map<NodeId, membership::Frozen> frozen;
  for (const auto& [node, bytes] : reports) frozen[NodeId(node)].set_report(bytes);
  const cluster::View view;
  const cluster::HoldingMap holdings;
  Judgement judgement;
  judgement.decision = workload.decide(
      {.view = view, .reports = frozen, .before = holdings, .after = holdings, .committed = committed});
  EXPECT_TRUE(judgement.read.ParseFromString(judgement.decision.bytes));
  judgement.failure = judgement.decision.failure;
  EXPECT_EQ(judgement.failure.has_value(), !judgement.read.fault().empty());
  return judgement;
}

std::string bytes_of(const check::Report& report) { return report.SerializeAsString(); }

// Claim: the run goes on where the furthest survivor is, at least at the committed step. Each thing has the
// chain of that step, whether its holder survived or not.
TEST(CheckWorkload, GoesOnWhereTheFirstSurvivorIs) {
  const CheckNumbers numbers(kConfig);
  const auto expect = [&](const Judgement& judgement, std::uint64_t step) {
    EXPECT_EQ(judgement.failure, std::nullopt);
    EXPECT_EQ(judgement.decision.committed, StepNumber(step));
    EXPECT_EQ(judgement.read.resume(), step);
    ASSERT_EQ(judgement.read.chains_size(), 6);
    for (int thing = 0; thing < 6; ++thing) {
      EXPECT_EQ(judgement.read.chains(thing),
                numbers.chain(static_cast<std::uint64_t>(thing), StepNumber(step)));
    }
  };
  expect(judge({}), 0);
  expect(judge({}, StepNumber(12)), 12);
  expect(judge({{2, bytes_of(report(0, 0, {}))}, {3, bytes_of(report(0, 0, {}))}}), 0);
  expect(judge({{2, bytes_of(report(4, 9, {0, 1}))}, {3, bytes_of(report(4, 10, {2, 3}))}}), 10);
  expect(judge({{2, bytes_of(report(4, 10, {0, 1}))}, {3, bytes_of(report(4, 9, {2, 3}))}}, StepNumber(9)),
         10);
  // One member has come since, and one missed the last epoch.
  expect(judge({{2, bytes_of(report(7, 100, {0}))},
                {3, bytes_of(report(0, 0, {}))},
                {4, bytes_of(report(5, 40, {0, 5}))}}),
         100);
}

// Claim: an impossible report is found, whichever member sends it. The error names the node and its words.
TEST(CheckWorkload, ContradictionsAreFound) {
  const std::string good = bytes_of(report(4, 10, {0, 1}));
  check::Report chain = report(4, 10, {2, 3});
  chain.mutable_held(1)->set_chain(chain.held(1).chain() ^ 1);
  check::Report another_step = report(4, 10, {2, 3});
  another_step.set_step(11);
  const std::map<std::string, std::string> bad = {
      {"chain", bytes_of(chain)},
      {"chain of 11", bytes_of(another_step)},
      {"chain of a stale one", bytes_of([&] {
         check::Report stale = chain;
         stale.set_installed(3);
         return stale;
       }())},
      {"two ahead", bytes_of(report(4, 12, {2, 3}))},
      {"two behind", bytes_of(report(4, 8, {2, 3}))},
      {"held by two", bytes_of(report(4, 10, {1, 2}))},
  };
  for (const auto& [what, bytes] : bad) {
    for (const bool first : {false, true}) {
      const Judgement judgement = judge({{2, first ? bytes : good}, {3, first ? good : bytes}});
      ASSERT_TRUE(judgement.failure.has_value()) << what;
      EXPECT_EQ(judgement.read.fault(), judgement.failure->message());
      EXPECT_EQ(judgement.decision.committed, std::nullopt) << what;
      EXPECT_EQ(judgement.failure->where.substr(0, 5), "node ");
    }
  }
  EXPECT_NE(judge({{2, good}, {3, bytes_of(chain)}}).read.fault().find("node 3"), std::string::npos);
  EXPECT_NE(judge({{2, good}, {3, bytes_of(chain)}}).read.fault().find("of thing 3 after 10 steps"),
            std::string::npos);
}

// Claim: reports that no engine makes are not readable, and all others are.
TEST(CheckWorkload, KnowsWhatIsAReport) {
  const CheckWorkload workload(kConfig);
  EXPECT_TRUE(workload.readable(bytes_of(report(0, 0, {}))));
  EXPECT_TRUE(workload.readable(bytes_of(report(4, 10, {0, 1, 2, 3, 4, 5}))));
  EXPECT_FALSE(workload.readable("\xff\xff\xff"));
  check::Report none = report(4, 10, {2});
  none.mutable_held(0)->set_thing(6);
  EXPECT_FALSE(workload.readable(bytes_of(none)));
  EXPECT_FALSE(workload.readable(bytes_of(report(4, 10, {2, 2}))));
  EXPECT_FALSE(workload.readable(bytes_of(report(4, 10, {2, 1}))));
  const CheckWorkload ends({.things = 6, .elements = 16, .steps = 10});
  EXPECT_TRUE(ends.readable(bytes_of(report(4, 10, {0}))));
  EXPECT_FALSE(ends.readable(bytes_of(report(4, 11, {0}))));
}

// Claim: a member that went on with an epoch of which it has never heard is fenced. It would be compared with
// nobody, and its step would be believed.
TEST(CheckWorkload, KnowsNoEpochsToCome) {
  const CheckWorkload workload(kConfig);
  std::map<NodeId, membership::Frozen> frozen;
  for (const std::uint64_t node : {2U, 3U, 4U}) {
    frozen[NodeId(node)].set_installed(4);
    frozen[NodeId(node)].set_report(bytes_of(report(node, 10, {node})));
  }
  EXPECT_TRUE(workload.contradicting(frozen).empty());
  frozen[NodeId(3)].set_report(bytes_of(report(1ULL << 62, 1ULL << 61, {3})));
  EXPECT_EQ(workload.contradicting(frozen), std::set{NodeId(3)});
}

// Claim: three members two steps apart are found in any order, also if each is near its neighbour.
TEST(CheckWorkload, SlowCompanyIsFound) {
  std::vector<std::uint64_t> steps = {10, 11, 12};
  do {
    std::map<std::uint64_t, std::string> reports;
    for (std::uint64_t i = 0; i < 3; ++i) reports[2 + i] = bytes_of(report(4, steps[i], {i}));
    EXPECT_TRUE(judge(reports).failure.has_value());
  } while (std::ranges::next_permutation(steps).found);
}

// Claim: a decision rests on its argument alone. After a fault, true reports are judged as if nothing had
// been.
TEST(CheckWorkload, ForgetsWhatItFound) {
  CheckWorkload workload(kConfig);
  std::map<NodeId, membership::Frozen> frozen;
  const cluster::View view;
  const cluster::HoldingMap holdings;
  const cluster::Rest rest{.view = view, .reports = frozen, .before = holdings, .after = holdings};
  const std::string before = workload.decide(rest).bytes;
  check::Report wrong = report(4, 10, {2});
  wrong.mutable_held(0)->set_chain(1);
  frozen[NodeId(2)].set_report(bytes_of(wrong));
  EXPECT_TRUE(workload.decide(rest).failure.has_value());
  frozen.clear();
  const cluster::Decision after = workload.decide(rest);
  EXPECT_EQ(after.bytes, before);
  EXPECT_FALSE(after.failure.has_value());
}

// Claim: things and tracks are as many as asked for, numbered from 0.
TEST(CheckWorkload, HasItsThings) {
  const CheckWorkload workload(kConfig);
  ASSERT_EQ(workload.things().size(), 6u);
  ASSERT_EQ(workload.tracks().size(), 6u);
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(workload.things()[i].id, placement::ThingId(i));
    EXPECT_EQ(workload.tracks()[i], cluster::TrackId(i));
  }
}

}  // namespace
}  // namespace gossamer::check
