// SPDX-License-Identifier: Apache-2.0
//
// Credits: how many microbatches members send to the next stage, and to which of its members
// (docs/protocols/pipeline-step.md, "Credits"). A receiver grants (GrantedCredits), a sender uses what it was
// granted (HeldCredits). Both are made anew for each attempt.
//
// Pure state machines. Cost: linear in the members of one stage for each call. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"

namespace gossamer::pipeline {

// What a member has granted to those of the stage before.
class GrantedCredits {
 public:
  struct Options {
    std::uint64_t room = 1;         // microbatches that this member may hold, unused credits included
    std::uint64_t most_unused = 2;  // credits of one sender: what hides the way between the two
  };
  // Requires room for one microbatch of each sender.
  GrantedCredits(std::span<const NodeId> senders, const Options& options);

  // A sender may send so many in this attempt in all.
  struct Grant {
    NodeId to;
    std::uint64_t total = 0;
    bool operator==(const Grant&) const = default;
  };
  // What is granted now, while this member holds so many microbatches. Each sender at most once, by node.
  [[nodiscard]] std::vector<Grant> grant(std::uint64_t held);
  // A microbatch came. False: the sender had no credit for it, or is none.
  [[nodiscard]] bool take(NodeId from);

 private:
  struct Sender {
    std::uint64_t total = 0;
    std::uint64_t taken = 0;
    [[nodiscard]] std::uint64_t unused() const { return total - taken; }
  };
  const Options options_;
  std::map<NodeId, Sender> senders_;
  std::uint64_t unused_ = 0;  // of all
};

// What members of the next stage have granted to this one.
class HeldCredits {
 public:
  explicit HeldCredits(std::span<const NodeId> receivers);

  // No honest receiver grants more at once.
  static constexpr std::uint64_t kMostUnused = 8;
  // The receiver lets this member send so many in all. False: it is no receiver, has said more before, or
  // grants too much. Such a word breaks a rule.
  [[nodiscard]] bool granted(NodeId by, std::uint64_t total);
  // Uses a credit: of the receiver with the most, of equal ones of that to which the fewest were sent, then
  // of the lower node. Nothing: there is none.
  [[nodiscard]] std::optional<NodeId> use();
  [[nodiscard]] bool none() const;

 private:
  struct Receiver {
    std::uint64_t total = 0;
    std::uint64_t sent = 0;
  };
  std::map<NodeId, Receiver> receivers_;
};

}  // namespace gossamer::pipeline
