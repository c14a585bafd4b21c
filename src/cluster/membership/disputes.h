// SPDX-License-Identifier: Apache-2.0
//
// Disputes: of members that cannot reach each other, who has to go? Members say whom they do not reach. That
// may be untrue, and a path that is cut looks the same from both ends. So whoever has failed to get through
// to more nodes goes, and of those with as many the one whose word has cost more lives, then the one whose
// disputes have, then the younger: a new life of a liar harms nobody older. What a dispute has cost is
// remembered of those that stay,
// - whose word it was,
// - or for whom nothing spoke but that they are older,
// and counts in their next ones: whoever has one after another fenced, by its word or by its silence, is
// itself the one to go at the second.
//
// A dispute is between two, and is there while either says that it does not reach the other. It ripens: only
// what was said for long enough costs a life. What somebody's going cost does not count in disputes that
// began before: they belong to the same trouble, a network that fell apart.
//
// Remembered is one entry for each life, until the member goes itself. Cost: linear in the disputes that
// there are. Thread rule: one owner.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class Disputes {
 public:
  static constexpr Duration kRipe{7'000'000'000};  // beside the 3 s before members say so
  enum class Memory { kKept, kNone };              // kNone: a defect for simulations

  explicit Disputes(Memory memory = Memory::kKept) : memory_(memory) {}

  // All whom it does not reach; what it said before and does not say now is over.
  void says(NodeId by, const std::set<NodeId>& unreachable, Instant now);
  // Since when it has said so.
  [[nodiscard]] std::optional<Instant> since(NodeId by, NodeId of) const;

  // Whether there is any.
  [[nodiscard]] bool none() const { return said_.empty(); }
  // Who has to go of `heard`, whose word counts, and is gone() by that: nobody, if no dispute between two of
  // them is ripe.
  [[nodiscard]] std::optional<NodeId> settle(const std::map<NodeId, Incarnation>& heard, Instant now);
  // It is gone, for whatever reason; another life of it begins with nothing.
  void gone(NodeId node);
  // What it says, and what is said of it, counts from now: it could not have been reached.
  void anew(NodeId node);
  void all_anew() { said_.clear(); }

 private:
  struct Cost {
    NodeId node;
    Instant when;
    bool by_word = false;  // it said so itself
  };
  // What speaks against one; compared in this order.
  struct Weight {
    std::size_t others = 0;
    std::size_t by_word = 0;
    std::size_t lives = 0;  // of one node perhaps
    Incarnation life;
    auto operator<=>(const Weight&) const = default;
  };

  [[nodiscard]] std::map<NodeId, Weight> weights(const std::map<NodeId, Incarnation>& heard,
                                                 Instant now) const;
  void remember(NodeId loser, const std::map<NodeId, Weight>& weights, Instant now);

  Memory memory_;
  std::map<NodeId, std::map<NodeId, Instant>> said_;  // none is empty
  std::map<NodeId, std::vector<Cost>> costs_;
};

}  // namespace gossamer::cluster
