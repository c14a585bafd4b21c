// SPDX-License-Identifier: Apache-2.0
//
// What the coordinator learns of a member's pace. The member is one of a run in virtual time. The steps are
// those of a learner beside it, which holds everything and takes them by a clock of the test.
#include "engines/sparse/fleet/fleet_reporter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engines/sparse/fleet/fleet_engine.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

// Goes on by a tick with each look at it.
class TickingClock final : public host::Clock {
 public:
  [[nodiscard]] Instant now() const override {
    ++looks_;
    now_ = now_ + tick;
    return now_;
  }
  [[nodiscard]] Duration process_cpu() const override { return {}; }
  [[nodiscard]] double wall_seconds() const override { return 0; }
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

  Duration tick = from_milliseconds(1);

 private:
  mutable Instant now_;
  mutable std::uint64_t looks_ = 0;
};

class FleetReporterTest : public ::testing::Test {
 protected:
  using Beside = FleetReporter::Beside;

  void SetUp() override {
    fleet_->join({.make_engine = [this](cluster::MemberProcess& process) {
      process_ = &process;
      return std::make_unique<FleetEngine>(
          process, [this](const std::string&) -> Result<std::shared_ptr<const FleetJob>> {
            return problem_.make_job(2, NodeId(2));
          });
    }});
    fleet_->run_for(5);
    ASSERT_NE(process_, nullptr);
    ASSERT_NE(process_->member(), nullptr);
  }
  // Gives a learner of one all of the network.
  void begin(FleetLearner& learner) {
    const FleetShape& shape = problem_.shape();
    std::set<std::size_t> shards;
    for (std::size_t shard = 0; shard < shape.shards(); ++shard) shards.insert(shard);
    sparse::NetworkPart part = with_shards(no_part(shape), shape, shards);
    columns_of(part, 0) = {0, shape.width(0)};
    learner.hold(initial_network(learner.job(), part));
    learner.join({part}, 0);
  }
  void take_step(FleetLearner& learner) {
    const StepNumber step = learner.applied();
    std::vector<Slices> got(1);
    for (const FleetRound& round : step_rounds(problem_.shape().layers())) {
      auto given = learner.round(step, round, got);
      ASSERT_TRUE(given.ok()) << given.error().message();
      got[0] = *std::move(given);
    }
  }
  // What the coordinator believes of the member.
  [[nodiscard]] cluster::Pace pace() {
    for (const cluster::MemberFacts& one : fleet_->leader()->members()) {
      if (NodeId(one.record->node()) == process_->member()->self().node) return one.pace;
    }
    ADD_FAILURE() << "it is no member";
    return {};
  }

  const simulation::TinyProblem problem_{{.steps = 100'000}};
  simulation::SparseFleet fleet_{problem_, {.first_members = 1}};
  cluster::MemberProcess* process_ = nullptr;
  const sparse::NetworkPart seven_shards_ =
      with_shards(no_part(problem_.shape()), problem_.shape(), {1, 2, 3, 5, 8, 13, 21});
};

// Claim: a member's speed is its shards over the time of computing for them, and a step's time is all of it.
// Steps beside a snapshot, here a thousand times as long, count in neither.
TEST_F(FleetReporterTest, TellsThePace) {
  TickingClock clock;
  const auto job = problem_.make_job();
  FleetLearner learner(*job, &clock);
  FleetReporter reporter(*process_, &clock);
  begin(learner);
  double took = 0;
  for (int i = 0; i < 60; ++i) {
    const bool beside = i % 2 == 1;
    clock.tick = beside ? from_seconds(1) : from_milliseconds(1);
    const std::uint64_t before = clock.looks();
    take_step(learner);
    // The learner looks before and after each piece of its work.
    if (!beside) took = 0.001 * static_cast<double>(clock.looks() - before) / 2;
    reporter.measure(learner, seven_shards_, beside ? Beside::kSnapshot : Beside::kNothing,
                     fleet_->timeline().now());
    fleet_->run_for(0.1);
  }
  ASSERT_GT(took, 0);
  EXPECT_NEAR(pace().speed * took, 7, 0.07);
  EXPECT_NEAR(pace().step_s, 0.1, 0.001);
}

// Claim: a member tells no pace without a clock, nor where all members are on one machine.
TEST_F(FleetReporterTest, HasNoPaceToTell) {
  TickingClock clock;
  const auto all_machines = problem_.make_job();
  for (const bool one_machine : {false, true}) {
    FleetJob job = *all_machines;
    job.one_machine = one_machine;
    FleetLearner learner(job, &clock);
    FleetReporter reporter(*process_, one_machine ? &clock : nullptr);
    begin(learner);
    for (int i = 0; i < 30; ++i) {
      take_step(learner);
      reporter.measure(learner, seven_shards_, Beside::kNothing, fleet_->timeline().now());
      fleet_->run_for(0.1);
    }
    EXPECT_EQ(pace().speed, 0) << one_machine;
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
