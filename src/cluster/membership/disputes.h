// SPDX-License-Identifier: Apache-2.0
//
// Disputes: of two members that cannot reach each other, one has to go. Which one?
//
// Members say which others they do not reach. That may be untrue, and a path that is cut looks the same from
// both ends. So these criteria decide, one after the other; the member goes that has more of
// 1. nodes that it has failed to get through to,
// 2. lives that its word has cost,
// 3. lives that its disputes have cost,
// 4. youth: the younger goes.
//
// The cost of a dispute is remembered for a member that stays, if nothing spoke for it but that it is older,
// or what its node's earlier lives had cost the other. The cost counts in its next disputes. So a member that
// has one after another fenced, by its word or by its silence, is itself the one to go at the second.
//
// A dispute is between two members, and lasts while either says that it does not reach the other. It ripens:
// only words that stood for long enough, while no step was taken, cost a life. Where members take steps
// together, each needs all others, so a step disproves all words that were said before it. The cost of a life
// does not count in disputes that began before its end. They belong to the same trouble, a network that fell
// apart.
//
// A quarrel is a dispute of another kind: one says that the other breaks rules, and ends their link for that.
// Each time all come to rest. It is ripe at the kQuarrels-th view that the two have spoilt, and no step
// disproves it.
//
// Memory: one entry for each life that a dispute has cost, until the member with the entry goes itself. Cost:
// linear in the disputes that there are. Thread rule: one owner.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class Disputes {
 public:
  static constexpr Duration kRipe{7'000'000'000};  // on top of the 3 s before members say so
  static constexpr int kQuarrels = 3;
  static constexpr Duration kQuarrelForgotten{600'000'000'000};  // so long after the last view that it spoilt
  enum class Memory { kKept, kNone };                            // kNone: a defect for simulations

  explicit Disputes(Memory memory = Memory::kKept) : memory_(memory) {}

  // Replaces the word of `by`: all nodes that it does not reach now. Others that it named before are settled.
  void says(NodeId by, const std::set<NodeId>& unreachable, Instant now);
  // `by` says that `of` has broken rules towards it so many times in all, and that their link has ended in
  // the view of this epoch. It counts once for a view, and only if the number has risen. Returns whether it
  // counts.
  bool quarrels(NodeId by, NodeId of, std::uint64_t times, Epoch epoch, Instant now);
  // Since when `by` has said that it does not reach `of`.
  [[nodiscard]] std::optional<Instant> since(NodeId by, NodeId of) const;

  // Whether there is no dispute.
  [[nodiscard]] bool none() const { return said_.empty() && quarrels_.empty(); }
  // Whether two that are both heard have one.
  [[nodiscard]] bool quarrel_is_ripe(const std::function<bool(NodeId)>& heard) const;
  struct Loser {
    NodeId node;
    std::optional<NodeId> quarrels_with = {};  // if it has one quarrel that is ripe
  };
  // The member of `heard` that has to go, if a dispute between two of them is ripe. Its disputes are over
  // then. Only the words of members in `heard` count. `ripe`: after so long, at least kRipe.
  [[nodiscard]] std::optional<Loser> settle(const std::map<NodeId, Incarnation>& heard, Duration ripe,
                                            Instant now);
  // The node `gone` went in the place of the loser `stays`, which counts against that one. Its other disputes
  // begin anew.
  void favoured(NodeId stays, NodeId gone, Instant now);
  // The node is gone, for whatever reason. Its next life begins with nothing.
  void gone(NodeId node);
  // What the node says, and what is said about it, counts from now: it could not have been reached before.
  void anew(NodeId node);
  void all_anew() { said_.clear(); }

 private:
  struct Quarrel {
    Epoch epoch;  // the last that it spoilt
    int epochs = 0;
    std::uint64_t times = 0;  // rules were broken
    Instant last;
    [[nodiscard]] bool is_ripe() const { return epochs >= kQuarrels; }
  };
  struct Cost {
    NodeId node;
    Instant when;
    bool by_word = false;        // the member that remembers said so itself
    std::set<NodeId> with = {};  // others that said so, too; it counts where one of them does again
  };
  // What speaks against a member, compared in this order.
  struct Weight {
    std::size_t others = 0;
    std::size_t by_word = 0;
    std::size_t lives = 0;  // perhaps lives of the same node
    Incarnation life;
    auto operator<=>(const Weight&) const = default;
    // Whether youth alone makes this one heavier.
    [[nodiscard]] bool equals_but_for_age(const Weight& other) const {
      return others == other.others && by_word == other.by_word && lives == other.lives;
    }
  };

  [[nodiscard]] std::map<NodeId, Weight> weights(const std::map<NodeId, Incarnation>& heard, Duration ripe,
                                                 Instant now) const;
  // Whether `by` has said anything about `of` that counts.
  [[nodiscard]] bool accuses(NodeId by, NodeId of) const;
  // Those with which the node has a dispute, by its own word or theirs.
  [[nodiscard]] std::set<NodeId> partners(NodeId node) const;
  // Whether a cost counts in a dispute with these partners.
  [[nodiscard]] bool counts(const Cost& cost, const std::set<NodeId>& partners) const;
  // The loser's weight without what it owes to earlier lives of the other one's node.
  [[nodiscard]] Weight towards(NodeId other, NodeId loser, Weight weight) const;
  [[nodiscard]] std::optional<NodeId> quarrels_with(NodeId node) const;
  void remember(NodeId loser, const std::map<NodeId, Weight>& weights, Instant now);

  Memory memory_;
  std::map<NodeId, std::map<NodeId, Instant>> said_;       // no inner map is empty
  std::map<std::pair<NodeId, NodeId>, Quarrel> quarrels_;  // by accuser and accused
  std::map<NodeId, std::vector<Cost>> costs_;
};

}  // namespace gossamer::cluster
