// SPDX-License-Identifier: Apache-2.0
//
// LeadWatch: whether what a coordinator does to its members rests on what it has heard. A life that served is
// not fenced for its silence
// - while no other member is heard that could take over;
// - while more of the others say that they hear it than say that it is quiet;
// - with many that fell silent together, before the others say that it is quiet, or another one came back.
// A life is not fenced for coming to rest late while its engine works, nor while it is silent together with
// others, or with all of them. A leader that hears fewer than half of those that serve gives way.
// (docs/protocols/membership.md, "Deaths", "An engine that hangs".) It keeps books of its own, and knows
// nothing of Doubts and RestClock. Where it cannot be sure what the coordinator knew, it judges nothing.
//
// One object for one coordinator's process. All times are of its clock. Thread rule: the simulation's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/time.h"
#include "net/link/peer_id.h"
#include "simulation/watch/durable.h"

namespace gossamer::simulation {

class LeadWatch {
 public:
  struct Options {
    std::string machine;   // of the coordinator; members on it are not watched
    Duration freeze_time;  // of the run
  };
  // `durable` outlives the watch.
  LeadWatch(Options options, const Durable& durable);

  // The process leads from now on, or leads no more.
  void began(Instant now);
  void ended(Instant now);
  // The process was stopped, and goes on.
  void resumed(Instant now) { resumed_ = now; }
  // The run ends at this time: its leader stays.
  void ends(Instant now) { ends_ = now; }
  // The leader hears a member, or a control connection of its comes up or breaks.
  void heard(net::PeerId from, const membership::ToCoordinator& said, Instant now);
  void linked(net::PeerId peer, Instant now);
  // A node begins a life.
  void begun(Instant now) { backs_.insert(now); }
  // The leader has decided that a life serves. The store knows of it a little later.
  void serves(Incarnation one) { decided_.insert(one); }
  void broken(net::PeerId peer);

  // The leader has fenced the peer. Returns what speaks against that.
  [[nodiscard]] std::optional<std::string> fenced(net::PeerId peer, std::string_view why, Instant now);
  // The leader has members, another coordinator stands by, and the leader has just looked which members it
  // hears. `rests`: those that are heard come to rest, and it may wait for that. Returns why it should have
  // given way.
  [[nodiscard]] std::optional<std::string> stays(Instant now, bool rests);

 private:
  // What a member says of a node in one beat after the other.
  struct Word {
    Instant since;
    std::uint64_t beats = 0;
  };
  // What was heard of a member since it said Here to this leader.
  struct Life {
    explicit Life(NodeId number) : node(number) {}

    NodeId node;
    Instant heard;
    bool down = false;  // its connection broke after that
    std::uint64_t work_ms = 0;
    std::optional<Instant> worked;  // when a beat last told of work, in the epoch of the day
    std::map<NodeId, Word> hears;
    std::set<NodeId> quiet;
  };

  [[nodiscard]] bool served(Incarnation one) const { return decided_.contains(one) || durable_.served(one); }
  void hear(Incarnation one, Life& life, Instant now);
  // Lives elsewhere that serve, and those of them that the leader has missed for so long. Requires that it
  // leads.
  struct Lack {
    std::size_t missed = 0;
    std::size_t all = 0;
    bool hears_all = false;
  };
  [[nodiscard]] Lack lack(Instant now, Duration time) const;
  [[nodiscard]] Duration patience_of(Incarnation one, Duration all) const;
  void take_up(Life& life, const membership::Beat& beat, bool serves, Instant now) const;
  // A member was fenced for its silence, and is not among lives_ any more. It was last heard at `last`.
  [[nodiscard]] bool has_survivor(Instant now) const;
  // Whether a member that holds something is surely heard.
  [[nodiscard]] bool hears_holder(Instant now) const;
  // Lives that serve, by the last word of each.
  struct Group {
    std::size_t silent = 0;
    std::size_t all = 0;

    [[nodiscard]] Group with_silent() const { return {silent + 1, all + 1}; }
    [[nodiscard]] bool many_silent() const { return silent >= 2 && 3 * silent >= all; }
  };
  [[nodiscard]] Group serving() const;
  [[nodiscard]] std::optional<std::string> missed_with_others(Instant now) const;
  [[nodiscard]] std::optional<std::string> contradicted(NodeId node, Instant last, Instant now) const;

  const Options options_;
  const Durable& durable_;
  std::optional<Instant> began_;
  Instant resumed_;
  Instant ends_;                              // the last time at which the run was ending
  Instant last_came_;                         // when a life said Here for the first time in this lead
  std::set<Incarnation> gone_;                // fenced in this lead
  std::set<Incarnation> decided_;             // serve by a decision of this lead
  cluster::SilentTimes::Rows silent_before_;  // by the store, of those that were not heard in this lead
  std::set<Instant> backs_;                   // when a life came, or was heard after a silence
  // When one came back that had been silent together with others.
  std::optional<Instant> back_together_;
  Duration alone_for_;  // a lead in which nobody is heard lasts at most so long
  std::map<Incarnation, Life> lives_;
};

}  // namespace gossamer::simulation
