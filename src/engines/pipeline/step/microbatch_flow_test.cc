// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/microbatch_flow.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace gossamer::pipeline {
namespace {

using Kind = MicrobatchFlow::Kind;
using Job = MicrobatchFlow::Job;
using Sending = MicrobatchFlow::Sending;
using Grant = GrantedCredits::Grant;

constexpr NodeId kBefore{1};
constexpr NodeId kNext{5};
constexpr NodeId kOther{6};

MicrobatchFlow first_stage(std::uint64_t own, std::uint64_t room) {
  return MicrobatchFlow({.receivers = {kNext, kOther},
                         .microbatches = 8,
                         .first_own = 2,
                         .own = own,
                         .credits = {.room = room}});
}

// Claim: the first stage begins its own microbatches in order, one forward at a time, while it has room.
// Without a credit it computes nothing further forward.
TEST(MicrobatchFlow, FirstStage) {
  MicrobatchFlow flow = first_stage(4, 2);
  EXPECT_TRUE(flow.grants().empty());
  EXPECT_EQ(flow.next(false), (Job{Kind::kForward, 2}));
  flow.done({Kind::kForward, 2});
  EXPECT_EQ(flow.next_forward(), std::nullopt) << "no credit";
  EXPECT_EQ(flow.next(false), std::nullopt);
  EXPECT_EQ(flow.credit_came(kNext, 2), "");
  EXPECT_EQ(flow.next_forward(), (Sending{kNext, 2}));
  EXPECT_EQ(flow.next(false), (Job{Kind::kForward, 3}));
  flow.done({Kind::kForward, 3});
  EXPECT_EQ(flow.credit_came(kOther, 2), "");
  EXPECT_EQ(flow.next_forward(), (Sending{kOther, 3})) << "it has more unused credits";
  EXPECT_EQ(flow.next(false), std::nullopt) << "no room";
  EXPECT_EQ(flow.awaited(), (std::map<NodeId, std::uint64_t>{{kNext, 1}, {kOther, 1}}));
  EXPECT_EQ(flow.backward_came(kOther, 3), "");
  EXPECT_EQ(flow.next(false), (Job{Kind::kBackward, 3}));
  flow.done({Kind::kBackward, 3});
  EXPECT_EQ(flow.next_backward(), std::nullopt) << "nobody is before it";
  EXPECT_EQ(flow.next(false), (Job{Kind::kProducts, 3})) << "no room for another one";
  flow.done({Kind::kProducts, 3});
  EXPECT_EQ(flow.next(false), (Job{Kind::kForward, 4}));
  EXPECT_FALSE(flow.is_idle());
}

// Claim: a gradient goes before forward work, and products wait for both, except where memory is short.
TEST(MicrobatchFlow, OrderOfWork) {
  MicrobatchFlow flow(
      {.senders = {kBefore}, .receivers = {kNext}, .microbatches = 8, .credits = {.room = 4}});
  EXPECT_EQ(flow.grants(), std::vector{Grant({kBefore, 2})});
  EXPECT_EQ(flow.credit_came(kNext, 2), "");
  for (const std::uint64_t one : {0U, 1U}) EXPECT_EQ(flow.forward_came(kBefore, one), "");
  EXPECT_EQ(flow.grants(), std::vector{Grant({kBefore, 4})});
  for (const std::uint64_t one : {0U, 1U}) {
    EXPECT_EQ(flow.next(false), (Job{Kind::kForward, one}));
    flow.done({Kind::kForward, one});
    EXPECT_EQ(flow.next_forward(), (Sending{kNext, one}));
  }
  EXPECT_EQ(flow.forward_came(kBefore, 2), "");
  EXPECT_EQ(flow.next(false), (Job{Kind::kForward, 2}));
  EXPECT_EQ(flow.backward_came(kNext, 1), "");
  EXPECT_EQ(flow.next(false), (Job{Kind::kBackward, 1})) << "also before forward work that has begun";
  flow.done({Kind::kBackward, 1});
  EXPECT_EQ(flow.next_backward(), (Sending{kBefore, 1}));
  EXPECT_EQ(flow.next(false), (Job{Kind::kForward, 2}));
  EXPECT_EQ(flow.next(true), (Job{Kind::kProducts, 1}));
  flow.done({Kind::kForward, 2});
  EXPECT_EQ(flow.next(false), (Job{Kind::kProducts, 1}));
  flow.done({Kind::kProducts, 1});
  EXPECT_EQ(flow.held(), 2U);
  EXPECT_EQ(flow.grants(), std::vector{Grant({kBefore, 5})}) << "one unused, two held, room for four";
}

// Claim: the last stage needs no credit, and goes backward at once.
TEST(MicrobatchFlow, LastStage) {
  MicrobatchFlow flow({.senders = {kBefore}, .microbatches = 8, .credits = {.room = 2}});
  EXPECT_EQ(flow.grants(), std::vector{Grant({kBefore, 2})});
  EXPECT_EQ(flow.forward_came(kBefore, 7), "");
  flow.done(*flow.next(false));
  EXPECT_EQ(flow.next_forward(), std::nullopt);
  EXPECT_EQ(flow.next(false), (Job{Kind::kBackward, 7}));
  flow.done(*flow.next(false));
  EXPECT_EQ(flow.next_backward(), (Sending{kBefore, 7}));
  EXPECT_TRUE(flow.grants().empty()) << "it still holds it";
  flow.done(*flow.next(false));
  EXPECT_EQ(flow.grants(), std::vector{Grant({kBefore, 3})});
  EXPECT_TRUE(flow.is_idle());
}

// Claim: each message that breaks a rule is named, and changes nothing.
TEST(MicrobatchFlow, Rules) {
  MicrobatchFlow flow(
      {.senders = {kBefore}, .receivers = {kNext}, .microbatches = 8, .credits = {.room = 1}});
  EXPECT_NE(flow.forward_came(kBefore, 0), "") << "no credit yet";
  (void)flow.grants();
  EXPECT_NE(flow.forward_came(kNext, 0), "") << "of the wrong stage";
  EXPECT_NE(flow.forward_came(kBefore, 8), "") << "there is none such";
  EXPECT_EQ(flow.forward_came(kBefore, 0), "");
  EXPECT_NE(flow.forward_came(kBefore, 0), "") << "twice";
  EXPECT_NE(flow.forward_came(kBefore, 1), "") << "a credit is for one";
  EXPECT_NE(flow.backward_came(kNext, 0), "") << "it was not sent";
  EXPECT_NE(flow.credit_came(kBefore, 1), "") << "no receiver";
  EXPECT_NE(flow.credit_came(kNext, 9), "") << "nobody grants so much";
  EXPECT_EQ(flow.credit_came(kNext, 2), "");
  EXPECT_NE(flow.credit_came(kNext, 1), "") << "less than before";
  flow.done(*flow.next(false));
  EXPECT_EQ(flow.next_forward(), (Sending{kNext, 0}));
  EXPECT_NE(flow.backward_came(kBefore, 0), "") << "it was sent to another one";
  EXPECT_EQ(flow.backward_came(kNext, 0), "");
  EXPECT_NE(flow.backward_came(kNext, 0), "") << "twice";
  MicrobatchFlow first = first_stage(1, 1);
  EXPECT_NE(first.forward_came(kBefore, 0), "") << "nobody is before the first stage";
}

// Flows of members of several stages, and the messages between them: in order for each pair, else at random.
class FlowsTogether {
 public:
  FlowsTogether(const std::vector<std::size_t>& sizes, std::uint64_t each, std::uint64_t room,
                std::uint64_t seed)
      : rng_(seed, Purpose::kTest) {
    std::vector<std::vector<NodeId>> stages;
    std::uint64_t node = 1;
    for (const std::size_t size : sizes) {
      auto& stage = stages.emplace_back();
      for (std::size_t i = 0; i < size; ++i) stage.emplace_back(node++);
    }
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (std::size_t i = 0; i < stages[s].size(); ++i) {
        MicrobatchFlow::Options options{.microbatches = each * sizes[0], .credits = {.room = room}};
        if (s > 0) options.senders = stages[s - 1];
        if (s + 1 < stages.size()) options.receivers = stages[s + 1];
        if (s == 0) options.first_own = i * each;
        if (s == 0) options.own = each;
        flows_.emplace(stages[s][i], MicrobatchFlow(options));
      }
    }
  }

  // Moves at random until nothing moves. Returns whether all is done, and each stage has added each
  // microbatch once.
  bool run(std::size_t stages, std::uint64_t microbatches) {
    while (!moves().empty()) {
      const auto all = moves();
      take(all[rng_.below(all.size())]);
    }
    for (const auto& [node, flow] : flows_) {
      if (!flow.is_idle()) return false;
    }
    return added_.size() == stages * microbatches;
  }

 private:
  enum class What { kCredit, kForward, kBackward };
  using Message = std::pair<What, std::uint64_t>;
  struct Move {
    NodeId to;
    std::optional<NodeId> from = {};  // nothing: `to` computes
  };

  std::vector<Move> moves() {
    std::vector<Move> all;
    for (auto& [node, flow] : flows_) {
      settle(node, flow);
      if (flow.next(false)) all.push_back({.to = node});
    }
    for (const auto& [way, queue] : ways_) {
      if (!queue.empty()) all.push_back({.to = way.second, .from = way.first});
    }
    return all;
  }
  void settle(NodeId node, MicrobatchFlow& flow) {
    for (const Grant& grant : flow.grants()) ways_[{node, grant.to}].emplace_back(What::kCredit, grant.total);
    while (const auto sending = flow.next_forward())
      ways_[{node, sending->to}].emplace_back(What::kForward, sending->microbatch);
    while (const auto sending = flow.next_backward())
      ways_[{node, sending->to}].emplace_back(What::kBackward, sending->microbatch);
  }
  void take(const Move& move) {
    MicrobatchFlow& flow = flows_.at(move.to);
    if (!move.from) {
      const Job job = *flow.next(rng_.below(2) == 0);
      const bool is_new = job.kind != Kind::kProducts || added_.emplace(move.to, job.microbatch).second;
      EXPECT_TRUE(is_new);
      return flow.done(job);
    }
    auto& queue = ways_.at({*move.from, move.to});
    const auto [what, number] = queue.front();
    queue.erase(queue.begin());
    switch (what) {
      case What::kCredit: EXPECT_EQ(flow.credit_came(*move.from, number), ""); break;
      case What::kForward: EXPECT_EQ(flow.forward_came(*move.from, number), ""); break;
      case What::kBackward: EXPECT_EQ(flow.backward_came(*move.from, number), ""); break;
    }
  }

  Rng rng_;
  std::map<NodeId, MicrobatchFlow> flows_;
  std::map<std::pair<NodeId, NodeId>, std::vector<Message>> ways_;
  std::set<std::pair<NodeId, std::uint64_t>> added_;
};

// Claim: in whatever order members compute and messages come, all microbatches go through all stages, once.
// The least room for which a placement gives a stage is enough, so no members wait for each other in a
// circle.
TEST(MicrobatchFlow, AllGoThrough) {
  const std::vector<std::vector<std::size_t>> fleets{{1}, {1, 1}, {2, 1}, {1, 3}, {3, 2, 3}, {2, 1, 1, 2}};
  for (const auto& sizes : fleets) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const std::uint64_t room = 3 + seed % 3;  // no stage has more than three members
      FlowsTogether flows(sizes, 5, room, seed);
      EXPECT_TRUE(flows.run(sizes.size(), 5 * sizes[0])) << sizes.size() << " stages, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gossamer::pipeline
