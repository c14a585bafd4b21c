// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_measuring.h"

#include <gossamer/sparse_serving.pb.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/fleet/step/layout_message.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;

// The lead of members that each hold the whole network in turn.
class FleetMeasuringTest : public ::testing::Test {
 protected:
  void begin(StepRunner::Measure measure) {
    measuring_.emplace(host_, std::move(measure), sparse_engine::ModelInParts{.shape = shape_});
    measuring_->begin_loop(
        [](const std::function<void()>& work, const auto& then) { work(), then(Instant()); },
        [](const auto&) {});
  }
  // Node `node` tells that it has the whole network.
  void ready(std::uint64_t node, Epoch epoch) {
    sparse_serving::Body body;
    body.mutable_ready()->set_epoch(epoch.value);
    sparse::NetworkPart part = with_shards(no_part(shape_), shape_, {0, 1});
    part.columns = {0, 16};
    sparse_engine::write_part(part, *body.mutable_ready()->mutable_part());
    sparse_engine::Layout layout;
    sparse_engine::LayoutMember& holder = layout.members.emplace_back();
    holder.node = NodeId(node);
    holder.after = part;
    measuring_->asker().placed(epoch, sparse_engine::write_layout(layout));
    measuring_->asker().on({.from = {NodeId(node), Incarnation(node)},
                            .message = {.channel = sparse_engine::kQueryChannel,
                                        .body = body.SerializeAsString(),
                                        .payload = {}},
                            .receipt = {}},
                           Instant());
  }
  // Looks until all is measured.
  void wait() {
    while (!measuring_->done()) std::this_thread::yield();
  }

  SimMachine machine_;
  const run::NodeHost host_ = machine_.host();
  const sparse_engine::FleetShape shape_{.network = {.features = 4, .labels = 10, .hidden = 16},
                                         .shard_shift = 3};
  std::optional<FleetMeasuring> measuring_;
};

// Claim: nothing is measured before the members have the whole network, and it is measured once. If the view
// changes, it is measured again, with the members that are there then.
TEST_F(FleetMeasuringTest, MeasuresWhatTheMembersOfAViewHold) {
  std::atomic<int> times = 0;
  begin([&times](StepRunner::MakePredictor, const std::function<bool()>&) {
    return Result(Measured{.metrics_json = std::to_string(++times), .text = {}});
  });
  EXPECT_FALSE(measuring_->done());
  EXPECT_TRUE(measuring_->holders().empty());
  EXPECT_EQ(times, 0);
  ready(5, Epoch(3));
  EXPECT_EQ(measuring_->holders(), std::set{NodeId(5)});
  wait();
  EXPECT_TRUE(measuring_->done());
  EXPECT_EQ(times, 1);
  ready(6, Epoch(4));
  EXPECT_EQ(measuring_->holders(), std::set{NodeId(6)});
  EXPECT_FALSE(measuring_->done());
  wait();
  const auto measured = measuring_->take();
  ASSERT_TRUE(measured && measured->ok());
  EXPECT_EQ((*measured)->metrics_json, "2");
}

// Claim: a lead whose members do not come back does not wait for them for ever, counted from when their parts
// are there: training may take longer. Once one is ready it does.
TEST_F(FleetMeasuringTest, GivesUpWithoutMembers) {
  begin([](StepRunner::MakePredictor, const std::function<bool()>&) { return Result(Measured{}); });
  machine_.clock.advance(FleetMeasuring::kReadyPatience);
  EXPECT_FALSE(measuring_->given_up());
  machine_.clock.advance(FleetMeasuring::kReadyPatience);
  EXPECT_TRUE(measuring_->given_up());
  ready(5, Epoch(3));
  EXPECT_FALSE(measuring_->given_up());
}

// Claim: the end of the lead ends a measurement that waits for answers.
TEST_F(FleetMeasuringTest, EndsWithTheLead) {
  std::atomic<bool> asks = false;
  std::atomic<bool> ended = false;
  begin([&](StepRunner::MakePredictor make, const std::function<bool()>& stop) -> Result<Measured> {
    sparse_engine::Model model;
    model.network.shape = shape_.network;
    const auto predictor = make(model);
    asks = true;
    const std::vector<std::uint32_t> begin{0, 1};
    const std::vector<std::uint32_t> index{2};
    const std::vector<float> value{1};
    sparse_engine::PredictionBlock out;
    const auto answered = predictor->predict({begin, index, value}, 3, out);
    EXPECT_FALSE(answered.ok());
    EXPECT_TRUE(stop());
    ended = true;
    return answered.error();
  });
  ready(5, Epoch(3));
  EXPECT_FALSE(measuring_->done());
  while (!asks) std::this_thread::yield();
  measuring_->end();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace gossamer::commands
