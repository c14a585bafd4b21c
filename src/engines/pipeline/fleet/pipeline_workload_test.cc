// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/pipeline_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace gossamer::pipeline {
namespace {

using Frozen = std::map<NodeId, membership::Frozen>;

PipelineWorkload::Options six_layers() {
  return {.work = {1, 1, 1, 1, 1, 3}, .microbatches = 5, .tokens = 100};
}

membership::Frozen at_rest(const RestReport& report) {
  membership::Frozen said;
  said.set_installed(report.installed.value);
  said.set_report(write_report(report));
  return said;
}

// Rests of a run, one after the other.
class Rests {
 public:
  explicit Rests(const PipelineWorkload::Options& options) : workload_(options), other_(options) {}

  cluster::Decision decide(const Frozen& reports, const std::set<NodeId>& draining = {}) {
    ++epoch_;
    std::map<NodeId, membership::MemberRecord> members;
    for (const auto& [node, report] : reports)
      members[node].set_state(draining.contains(node) ? membership::DRAINING : membership::SERVING);
    const cluster::View view(Epoch(epoch_), members, {}, {});
    const cluster::HoldingMap nothing;
    const cluster::Rest rest{
        .view = view, .reports = reports, .before = nothing, .after = nothing, .last = last_};
    const cluster::Decision decision = workload_.decide(rest);
    EXPECT_EQ(other_.decide(rest).bytes, decision.bytes) << "another coordinator decides the same";
    return decision;
  }
  // The decision is installed.
  PipelineDecision go_on(const Frozen& reports, const std::set<NodeId>& draining = {}) {
    const cluster::Decision decision = decide(reports, draining);
    EXPECT_FALSE(decision.failure.has_value());
    last_ = decision.bytes;
    const auto read = read_decision(last_);
    EXPECT_TRUE(read.has_value());
    return read.value_or(PipelineDecision{});
  }
  [[nodiscard]] std::set<NodeId> contradicting(const Frozen& reports) const {
    return workload_.contradicting_by(last_, reports);
  }

 private:
  PipelineWorkload workload_;
  PipelineWorkload other_;
  std::uint64_t epoch_ = 0;
  std::string last_;
};

Frozen nobody_has_anything(std::uint64_t members) {
  Frozen reports;
  for (std::uint64_t i = 0; i < members; ++i) reports[NodeId(2 + i)] = at_rest({});
  return reports;
}

// Members 2 to 5, two for each stage, that have taken the first decision and have summed step 0.
RestReport summed(const PipelineDecision& decision, NodeId node) {
  const std::uint32_t stage = decision.layout.members.at(node);
  RestReport report{.installed = decision.layout.epoch, .stage = stage, .applied = decision.layout.step};
  report.sum = {.attempt = {.step = decision.layout.step, .epoch = decision.layout.epoch},
                .record = {.hash = 10 + stage, .squared_norm = 4, .tokens = 50}};
  return report;
}

Frozen all_summed(const PipelineDecision& decision) {
  Frozen reports;
  for (const auto& [node, stage] : decision.layout.members) reports[node] = at_rest(summed(decision, node));
  return reports;
}

// Claim: no cut of the layers has a smaller largest share.
TEST(CutLayers, LargestShareIsLeast) {
  Rng rng(5, Purpose::kTest);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<double> work(2 + rng.below(7));
    for (double& one : work) one = static_cast<double>(1 + rng.below(9));
    const auto layers = static_cast<std::uint32_t>(work.size());
    for (std::uint32_t stages = 1; stages <= layers; ++stages) {
      const auto share_of = [&](std::uint32_t first, std::uint32_t last) {
        return std::accumulate(work.begin() + first, work.begin() + last, 0.0);
      };
      double best = std::numeric_limits<double>::infinity();
      for (std::uint32_t mask = 0; mask < 1U << (layers - 1); ++mask) {
        if (std::popcount(mask) + 1 != static_cast<int>(stages)) continue;
        double most = 0;
        std::uint32_t first = 0;
        for (std::uint32_t last = 1; last <= layers; ++last) {
          if (last < layers && (mask >> (last - 1) & 1U) == 0) continue;
          most = std::max(most, share_of(first, last));
          first = last;
        }
        best = std::min(best, most);
      }
      double most = 0;
      std::uint32_t next = 0;
      for (const DecidedLayout::Stage& stage : cut_layers(work, stages)) {
        EXPECT_EQ(stage.first, next);
        EXPECT_LT(stage.first, stage.last);
        most = std::max(most, share_of(stage.first, stage.last));
        next = stage.last;
      }
      EXPECT_EQ(next, layers);
      EXPECT_EQ(most, best);
    }
  }
}

// Claim: half as many stages as members, each with two; a further member goes where most work is for each
// holder. All microbatches are dealt to the first stage.
TEST(PipelineWorkload, FirstLayout) {
  const std::vector<std::vector<std::size_t>> holders{{1}, {2}, {3}, {2, 2}, {3, 2}, {2, 2, 2}};
  for (std::uint64_t members = 1; members <= holders.size(); ++members) {
    PipelineWorkload::Options options = six_layers();
    options.start = StepNumber(40);
    const PipelineDecision first = Rests(options).go_on(nobody_has_anything(members));
    std::vector<std::size_t> counts(first.layout.stages.size());
    for (const auto& [node, stage] : first.layout.members) ++counts[stage];
    std::ranges::sort(counts, std::greater());
    EXPECT_EQ(counts, holders[members - 1]) << members;
    EXPECT_EQ(first.layout.step, StepNumber(40));
    std::uint64_t dealt = 0;
    for (const auto& [node, count] : first.dealt) dealt += count;
    EXPECT_EQ(dealt, 5U);
  }
  PipelineWorkload::Options wanted = six_layers();
  wanted.stages = 3;
  EXPECT_EQ(Rests(wanted).go_on(nobody_has_anything(4)).layout.stages.size(), 3U);
  PipelineWorkload::Options uneven = six_layers();
  uneven.work.back() = 100;
  for (const std::uint32_t stage : {0U, 1U}) {
    const Stages members = Rests(uneven).go_on(nobody_has_anything(4)).layout.members;
    EXPECT_EQ(std::ranges::count_if(members, [&](const auto& one) { return one.second == stage; }), 2);
  }
}

// Claim: survivors that have the sums of an attempt apply it, and go on without the dead member. If one lacks
// its sum, the step begins again.
TEST(PipelineWorkload, ADeath) {
  Rests rests(six_layers());
  const PipelineDecision first = rests.go_on(nobody_has_anything(4));
  const NodeId dead = first.layout.members.rbegin()->first;
  Frozen reports = all_summed(first);
  reports.erase(dead);
  EXPECT_TRUE(rests.contradicting(reports).empty());
  Frozen without = reports;
  RestReport computing = summed(first, NodeId(2));
  computing.sum.reset();
  without[NodeId(2)] = at_rest(computing);
  const auto again = read_decision(rests.decide(without).bytes);
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->apply.has_value());
  EXPECT_EQ(again->layout.step, StepNumber(0));
  const PipelineDecision next = rests.go_on(reports);
  ASSERT_TRUE(next.apply.has_value());
  EXPECT_EQ(next.apply->total, 8) << "of both stages";
  EXPECT_EQ(next.layout.step, StepNumber(1));
  EXPECT_FALSE(next.layout.members.contains(dead));
  EXPECT_EQ(next.layout.members.size(), 3U);
}

// Claim: a run whose stage has no holder any more ends, and says which layers are lost.
TEST(PipelineWorkload, ALostStage) {
  Rests rests(six_layers());
  const PipelineDecision first = rests.go_on(nobody_has_anything(4));
  Frozen reports = all_summed(first);
  std::erase_if(reports, [&](const auto& one) { return first.layout.members.at(one.first) == 1; });
  const cluster::Decision decision = rests.decide(reports);
  EXPECT_TRUE(decision.lost);
  ASSERT_TRUE(decision.failure.has_value());
  EXPECT_NE(decision.failure->got.find("layers 4 to 5"), std::string::npos) << decision.failure->got;
}

// Claim: numbers that are not finite are summed once more without a codec. Then the run stops, or the step is
// left out if the user says so.
TEST(PipelineWorkload, NotFinite) {
  for (const bool skips : {false, true}) {
    PipelineWorkload::Options options = six_layers();
    options.skips_bad = skips;
    Rests rests(options);
    PipelineDecision decision = rests.go_on(nobody_has_anything(4));
    const auto bad = [&] {
      Frozen reports;
      for (const auto& [node, stage] : decision.layout.members) {
        RestReport report = summed(decision, node);
        report.sum->attempt.tries = decision.layout.tries;
        report.sum->refused = true;
        report.sum->record.squared_norm = std::numeric_limits<double>::infinity();
        reports[node] = at_rest(report);
      }
      return reports;
    };
    decision = rests.go_on(bad());
    EXPECT_EQ(decision.layout.tries, 1U);
    EXPECT_FALSE(decision.apply.has_value());
    if (!skips) {
      EXPECT_NE(rests.decide(bad()).failure->what.find("not finite"), std::string::npos);
      continue;
    }
    decision = rests.go_on(bad());
    ASSERT_TRUE(decision.apply.has_value());
    EXPECT_TRUE(decision.apply->skipped);
    EXPECT_EQ(decision.layout.step, StepNumber(1));
    EXPECT_EQ(decision.layout.tries, 0U);
  }
}

// Claim: a member that drains is let go if another one has its stage; else it stays. One that joins gets
// none.
TEST(PipelineWorkload, DrainsAndJoins) {
  Rests rests(six_layers());
  const PipelineDecision first = rests.go_on(nobody_has_anything(4));
  Frozen reports = all_summed(first);
  reports[NodeId(9)] = at_rest({});
  const PipelineDecision next = rests.go_on(reports, {NodeId(2), NodeId(3), NodeId(4), NodeId(5)});
  std::set<std::uint32_t> stages;
  for (const auto& [node, stage] : next.layout.members) EXPECT_TRUE(stages.insert(stage).second);
  EXPECT_EQ(stages, (std::set<std::uint32_t>{0, 1}));
  EXPECT_FALSE(next.layout.members.contains(NodeId(9)));
}

// Claim: a member that says otherwise than most of its stage is named. Of two that contradict each other the
// younger one is.
TEST(PipelineWorkload, Lies) {
  PipelineWorkload::Options options = six_layers();
  options.stages = 1;
  Rests rests(options);
  const PipelineDecision first = rests.go_on(nobody_has_anything(3));
  Frozen reports = all_summed(first);
  RestReport lie = summed(first, NodeId(2));
  lie.sum->record.hash = 99;
  reports[NodeId(2)] = at_rest(lie);
  EXPECT_EQ(rests.contradicting(reports), std::set{NodeId(2)});
  reports.erase(NodeId(4));
  EXPECT_EQ(rests.contradicting(reports), std::set{NodeId(3)});
  EXPECT_FALSE(PipelineWorkload(options).readable("\xff"));
}

}  // namespace
}  // namespace gossamer::pipeline
