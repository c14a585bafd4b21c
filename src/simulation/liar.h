// SPDX-License-Identifier: Apache-2.0
//
// Liar: well-formed, untrue messages of a member to its coordinator. Thread rule: the simulation's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <optional>

#include "base/rng.h"
#include "cluster/control/member.h"
#include "net/link/peer_id.h"

namespace gossamer::simulation {

enum class Lies {
  kAccuses,      // says that it does not reach others, one innocent after another
  kWithholds,    // likewise, and the accused gets none of its parts
  kPretends,     // claims others' things, leases, samples and marks; repeats itself
  kContradicts,  // reports a number of steps that no member can have taken with it
};

class Liar {
 public:
  Liar(Lies lies, std::uint64_t seed, std::uint64_t things);

  // Changes a message that is about to be sent. `steps`: those that it has taken. `together`: it took them
  // with others that are still there and know better.
  void falsify(membership::ToCoordinator& said, const cluster::Member& member, StepNumber steps,
               bool together);
  // The member that gets none of its parts.
  [[nodiscard]] std::optional<net::PeerId> withheld_from() const {
    return lies_ == Lies::kWithholds ? victim_ : std::nullopt;
  }
  // A message that it sends in addition.
  [[nodiscard]] membership::ToCoordinator invent(const cluster::Member& member, StepNumber steps);

 private:
  void falsify_beat(membership::Beat& beat, const cluster::Member& member, StepNumber steps);
  void tell_of_others(membership::Beat& beat, const cluster::Member& member);
  [[nodiscard]] std::optional<NodeId> victim(const cluster::Member& member);
  void claim_progress(google::protobuf::RepeatedPtrField<membership::Progress>& progress,
                      const cluster::Member& member, StepNumber steps);

  [[nodiscard]] bool accuses() const { return lies_ == Lies::kAccuses || lies_ == Lies::kWithholds; }

  Lies lies_;
  Rng rng_;
  std::uint64_t things_;
  std::uint64_t worked_ms_ = 0;  // that it claims beside what is true
  // The last number of its invented requests. The member's own begin at 1, and other liars' begin elsewhere.
  // So a late answer is never taken for the answer to another request.
  std::uint64_t last_number_;
  std::optional<net::PeerId> victim_;
};

}  // namespace gossamer::simulation
