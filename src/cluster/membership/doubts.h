// SPDX-License-Identifier: Apache-2.0
//
// Doubts: is a silent member dead, or is this process cut off from it? A fence costs the member its life, and
// perhaps the run a piece of its state. A silent member that is spared costs time alone. So one is fenced
// only if other facts than the silence speak for its death:
// - Another member is heard and could take over. A member on this process's own machine says nothing about
//   the way to members elsewhere.
// - No other member hears it. Those that are still heard are asked about the silent. A member that more of
//   them hear than do not is spared: the path to this process alone is broken.
// - Few fell silent. Many did where at least two, and at least a third of all elsewhere, are silent together.
//   Members that join do not count where others serve, but share the fate of the many.
//   Then one is fenced only once two more of those that know say that it is quiet for them, too, than hear
//   it, or the only one that can be asked. Where nobody knows, another of the many has to come back first,
//   whose silence began in the same way.
// - No word of a single member ends the lives of all that hold something: it may lie. Two must say it.
//
// A member ends by itself when it has been without a coordinator for its patience. After that time nobody is
// spared. docs/protocols/membership.md, "Dead, or out of reach?".
//
// Cost: linear in the members, for each question about a silent one. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

// What a process hears of one member elsewhere that serves.
struct Presence {
  bool heard = false;
  bool came = false;  // in this lead
  Instant since;      // not heard: since then; or, if it never came, until then it has time to come
};
struct Hearing {
  std::size_t heard = 0;
  std::size_t all = 0;
  std::optional<Instant> misses_most_since = {};  // nothing: half of the members are not missed, at least
};
// Members that have not come are not missed while they have time to come. If none has come, all are missed
// since the lead began.
[[nodiscard]] Hearing hearing_of(const std::vector<Presence>& members, Instant began, Instant now);

class Doubts {
 public:
  // Connections come back one after another. They try again the later the longer the silence was.
  static constexpr Duration kComeBack{10'000'000'000};
  // If all that hold something are silent for so long, another member may take over. It may not where more of
  // those that are heard hear them than do not: of those that serve, or of all, joining ones too.
  static constexpr Duration kAbandoned{120'000'000'000};

  // How a silence began. A process that ends, or a machine that shuts down, closes its connections; a network
  // that is cut does not.
  enum class Silence { kWithoutAWord, kHungUp };
  struct Peer {
    bool elsewhere = true;                     // not on this process's machine
    bool serves = true;                        // a joining member does not
    bool holds = true;                         // some of the things
    bool heard = true;                         // and not suspected
    Instant last_sign;                         // of life, or when this process began to listen
    Silence silence = Silence::kWithoutAWord;  // if it is not heard
  };
  using Fleet = std::map<NodeId, Peer>;

  // The silent of a fleet, if they fell silent together, and others are heard that can be asked about them.
  [[nodiscard]] static std::set<NodeId> together(const Fleet& fleet);
  // Replaces the word of `by`: which silent members it hears, and which are quiet for it, too. False: it has
  // said so already.
  bool says(NodeId by, const std::set<NodeId>& hears, const std::set<NodeId>& quiet);
  // Whether any member that is heard itself has said whether it hears the node.
  [[nodiscard]] bool anybody_says(NodeId node, const Fleet& fleet) const;
  // Whether more members hear it than do not, of those that are heard themselves.
  [[nodiscard]] bool heard_by_others(NodeId node, const Fleet& fleet) const;
  // A member that was spared with all others, or with those that fell silent together, is heard again after
  // this silence, or its node begins another life.
  void came_back(NodeId node, Duration silence, Silence how, Instant now);
  // Until when members elsewhere have time to come back, once one of them has.
  [[nodiscard]] std::optional<Instant> others_return_until(Instant now) const {
    return spared_until_ > now ? std::optional(spared_until_) : std::nullopt;
  }
  // The node is gone. Its next life begins with nothing.
  void gone(NodeId node);

  // Until when the silent node is spared, unless something else happens; nothing: it is to be fenced. After a
  // silence of `patience` it is; after one of `abandoned`, where all that hold something are silent. Requires
  // that the fleet has it.
  [[nodiscard]] std::optional<Instant> spares(NodeId node, const Fleet& fleet, Duration patience, Instant now,
                                              Duration abandoned = kAbandoned) const;

 private:
  enum class Survivor { kNone, kJoins, kIdle, kHolds };

  [[nodiscard]] static Survivor survivor(NodeId node, const Fleet& fleet);
  struct Witnesses {
    std::size_t hear = 0;
    std::size_t quiet = 0;
  };
  // A node may begin lives to be a witness, so the word of a joining member counts only where it says so.
  enum class Whose { kServing, kAll };
  [[nodiscard]] Witnesses witnesses(NodeId node, const Fleet& fleet, Whose whose = Whose::kServing) const;
  [[nodiscard]] std::optional<Instant> spares_together(NodeId node, const Fleet& fleet, Instant given_up,
                                                       Instant now) const;

  std::map<NodeId, std::map<NodeId, bool>> words_;  // of a member about silent ones: whether it hears them
  Instant spared_until_;                            // members elsewhere
  std::map<Silence, Instant> last_returns_;         // of spared members
};

}  // namespace gossamer::cluster
