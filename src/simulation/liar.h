// SPDX-License-Identifier: Apache-2.0
//
// Liar: what a member says to its coordinator that is well-formed and untrue. Thread rule: the simulation's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <optional>

#include "base/rng.h"
#include "cluster/control/member.h"
#include "net/link/peer_id.h"

namespace gossamer::simulation {

enum class Lies {
  kAccuses,      // that it does not reach others, one innocent after another
  kPretends,     // what others hold, lease, claim and have done, and what it has said already
  kContradicts,  // a number of steps that nobody can have taken with it
};

class Liar {
 public:
  Liar(Lies lies, std::uint64_t seed, std::uint64_t things);

  // What is about to be said becomes what is said. `steps`: that it has taken; `together`: with others that
  // are still there, who know better.
  void falsify(membership::ToCoordinator& said, const cluster::Member& member, StepNumber steps,
               bool together);
  // What it says beside it.
  [[nodiscard]] membership::ToCoordinator invent(const cluster::Member& member, StepNumber steps);

 private:
  void falsify_beat(membership::Beat& beat, const cluster::Member& member, StepNumber steps);
  [[nodiscard]] std::optional<NodeId> victim(const cluster::Member& member);
  void claim_progress(google::protobuf::RepeatedPtrField<membership::Progress>& progress,
                      const cluster::Member& member, StepNumber steps);

  Lies lies_;
  Rng rng_;
  std::uint64_t things_;
  // Of requests. The member's own begin at 1, those of its other lies elsewhere: an answer that comes late is
  // no answer to another request.
  std::uint64_t last_number_;
  std::optional<net::PeerId> victim_;
};

}  // namespace gossamer::simulation
