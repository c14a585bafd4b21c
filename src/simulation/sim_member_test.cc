// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gossamer::simulation {
namespace {

using ::testing::ElementsAre;

// It wants pieces of work for both queues, which say how long they take, and writes down what happens when.
class WorkingEngine final : public cluster::Engine {
 public:
  struct Piece {
    std::string name;
    std::optional<Duration> lasts;
  };
  WorkingEngine(host::Timeline& timeline, std::vector<std::string>& told, std::vector<Piece> work,
                std::vector<Piece> side_work)
      : timeline_(timeline), told_(told) {
    main_.pieces = std::move(work);
    side_.pieces = std::move(side_work);
  }

  void on(const cluster::ProcessEvent&, Instant) override {}
  void tick(Instant) override {}
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return std::nullopt; }
  void drain(const std::string&, Instant) override {}
  [[nodiscard]] std::optional<Error> failure() const override { return std::nullopt; }
  [[nodiscard]] std::vector<CounterSample> counters() const override { return {}; }
  [[nodiscard]] Work take_work() override { return take(main_); }
  void worked(Instant) override { done(main_); }
  [[nodiscard]] Work take_side_work() override { return take(side_); }
  void side_worked(Instant) override { done(side_); }

 private:
  struct Queue {
    std::vector<Piece> pieces;
    std::string under_way = {};
  };
  Work take(Queue& queue) {
    if (queue.pieces.empty() || !queue.under_way.empty()) return {};
    const Piece piece = queue.pieces.front();
    queue.pieces.erase(queue.pieces.begin());
    queue.under_way = piece.name;
    if (!piece.lasts) return [] {};
    return {[] {}, *piece.lasts};
  }
  void done(Queue& queue) {
    told_.push_back(std::exchange(queue.under_way, {}) + " at " +
                    std::to_string(static_cast<int>((timeline_.now() - Instant{}).milliseconds())));
  }

  host::Timeline& timeline_;
  std::vector<std::string>& told_;
  Queue main_, side_;
};

// Claim: work takes the time that it says, and otherwise one that is drawn. Both queues go on at the same
// time.
TEST(SimMember, WorkTakesItsTime) {
  host::Timeline timeline(1);
  host::SimInternet internet(timeline, 1);
  std::vector<std::string> told;
  SimMember::Options options{.longest_work = from_milliseconds(40), .shortest_work = from_milliseconds(40)};
  options.make_engine = [&](cluster::MemberProcess&) {
    return std::make_unique<WorkingEngine>(
        timeline, told,
        std::vector<WorkingEngine::Piece>{{"layer", from_milliseconds(500)}, {"drawn", std::nullopt}},
        std::vector<WorkingEngine::Piece>{{"sum", from_milliseconds(200)}, {"sum", from_milliseconds(100)}});
  };
  SimMember member(timeline, internet, options, {.machine = "m1", .node = NodeId(1), .coordinators = {"c1"}});
  timeline.run_until(Instant{} + from_seconds(1));
  EXPECT_THAT(told, ElementsAre("sum at 200", "sum at 300", "layer at 500", "drawn at 540"));
}

// Claim: an engine that hangs hears of no work, on neither queue.
TEST(SimMember, HungEnginesHearOfNoWork) {
  host::Timeline timeline(1);
  host::SimInternet internet(timeline, 1);
  std::vector<std::string> told;
  SimMember::Options options;
  options.make_engine = [&](cluster::MemberProcess&) {
    return std::make_unique<WorkingEngine>(
        timeline, told, std::vector<WorkingEngine::Piece>{{"layer", from_milliseconds(300)}},
        std::vector<WorkingEngine::Piece>{{"sum", from_milliseconds(200)}});
  };
  SimMember member(timeline, internet, options, {.machine = "m1", .node = NodeId(1), .coordinators = {"c1"}});
  member.hang(from_milliseconds(800));
  timeline.run_until(Instant{} + from_seconds(1));
  EXPECT_THAT(told, ::testing::UnorderedElementsAre("sum at 800", "layer at 800"));
}

}  // namespace
}  // namespace gossamer::simulation
