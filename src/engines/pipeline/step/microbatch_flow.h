// SPDX-License-Identifier: Apache-2.0
//
// MicrobatchFlow: the microbatches of one attempt at one member. It says what is computed next, which results
// go where, and which messages break a rule (docs/protocols/pipeline-step.md, "Credits" and "Messages").
//
//   begun      a Forward came, or the first stage begins one of its own
//   forward    its boundary goes to a receiver with a credit; without one it waits, and nothing more is
//              computed forward; the last stage goes backward at once
//   away       the receiver computes; its Backward comes
//   backward   the gradient of the input goes to the sender, or the first stage has it back
//   products   they are added, and then the member holds it no more
//
// A pure state machine: it knows no tensor, no link, no time. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engines/pipeline/step/credits.h"

namespace gossamer::pipeline {

class MicrobatchFlow {
 public:
  struct Options {
    std::vector<NodeId> senders = {};    // members of the stage before; none: this is the first stage
    std::vector<NodeId> receivers = {};  // members of the next stage; none: this is the last one
    std::uint64_t microbatches = 0;      // of the step
    // First stage alone: its own are [first_own, first_own + own).
    std::uint64_t first_own = 0;
    std::uint64_t own = 0;
    GrantedCredits::Options credits = {};  // room: also for microbatches of the first stage's own
  };
  explicit MicrobatchFlow(const Options& options);

  // What to compute. A caller computes a piece of it, says whether that was the last one, and asks again:
  // something more urgent may have come.
  enum class Kind { kForward, kBackward, kProducts };
  struct Job {
    Kind kind = Kind::kForward;
    std::uint64_t microbatch = 0;
    bool operator==(const Job&) const = default;
  };
  // `is_short`: products are added before anything else, as they give memory back.
  [[nodiscard]] std::optional<Job> next(bool is_short);
  // The job is done whole.
  void done(const Job& job);

  // A boundary or gradient that is to be sent now. Nothing: none. To be called until then, after each call.
  struct Sending {
    NodeId to;
    std::uint64_t microbatch = 0;
    bool operator==(const Sending&) const = default;
  };
  [[nodiscard]] std::optional<Sending> next_forward();
  [[nodiscard]] std::optional<Sending> next_backward();
  // Credits to be told, likewise.
  [[nodiscard]] std::vector<GrantedCredits::Grant> grants();

  // A message came. Empty: it keeps the rules; else the rule that it breaks, and nothing has happened.
  [[nodiscard]] std::string_view forward_came(NodeId from, std::uint64_t microbatch);
  [[nodiscard]] std::string_view backward_came(NodeId from, std::uint64_t microbatch);
  [[nodiscard]] std::string_view credit_came(NodeId from, std::uint64_t total);

  // Microbatches that this member holds.
  [[nodiscard]] std::uint64_t held() const { return held_.size(); }
  // Those that wait for a gradient of others, by the member that is to send it.
  [[nodiscard]] std::map<NodeId, std::uint64_t> awaited() const;
  // The member that sent a microbatch which it holds, and the one that it was sent to.
  [[nodiscard]] std::optional<NodeId> sender_of(std::uint64_t microbatch) const {
    return held_.at(microbatch).from;
  }
  [[nodiscard]] std::optional<NodeId> receiver_of(std::uint64_t microbatch) const {
    return held_.at(microbatch).to;
  }
  // It has nothing of its own to begin, and holds none.
  [[nodiscard]] bool is_idle() const { return held_.empty() && own_left() == 0; }

 private:
  enum class Phase { kForward, kWaits, kAway, kBackward, kProducts };
  struct Held {
    Phase phase = Phase::kForward;
    std::optional<NodeId> from = {};  // nothing: its own
    std::optional<NodeId> to = {};
  };

  [[nodiscard]] bool is_first() const { return options_.senders.empty(); }
  [[nodiscard]] bool is_last() const { return options_.receivers.empty(); }
  [[nodiscard]] std::uint64_t own_left() const { return options_.own - own_begun_; }
  void begin_own();
  static void drop(std::deque<std::uint64_t>& queue, std::uint64_t microbatch);

  Options options_;
  std::optional<GrantedCredits> granted_;  // not of the first stage
  HeldCredits credits_;
  std::vector<bool> seen_;  // microbatches that have come
  std::uint64_t own_begun_ = 0;
  std::map<std::uint64_t, Held> held_;
  // In the order in which they came there.
  std::deque<std::uint64_t> forward_, backward_, products_;
  std::optional<std::uint64_t> waits_;  // its boundary needs a credit
  std::deque<Sending> gradients_;       // to be sent
};

}  // namespace gossamer::pipeline
