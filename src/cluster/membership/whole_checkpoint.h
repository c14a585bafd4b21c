// SPDX-License-Identifier: Apache-2.0
//
// WholeCheckpoint: the newest checkpoint that members have together on their own disks, and which member has
// which part (docs/protocols/membership.md, "What a decision rests on"). Members say at rest what they keep.
// The coordinator's store has the last one, and so what members had that do not live.
//
// Thread rule: plain values and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/ids.h"

namespace gossamer::cluster {

// Parts of a checkpoint that a member has whole on its own disk.
struct KeptParts {
  std::uint64_t lineage = 0;
  StepNumber step = {};  // the next one: those before are in it
  std::vector<std::uint64_t> parts = {};
};
// A member keeps its newest checkpoint, and the one before until that is whole.
inline constexpr std::size_t kMostKept = 4;

struct WholeCheckpoint {
  std::uint64_t lineage = 0;
  StepNumber step = {};
  std::map<NodeId, std::set<std::uint64_t>> has = {};  // parts, by node; also of nodes that do not live
  bool operator==(const WholeCheckpoint&) const = default;
};

// Whether a member can keep this, where a whole checkpoint has so many parts. Parts are in rising order.
[[nodiscard]] bool can_be_kept(std::span<const KeptParts> kept, std::uint64_t parts);

// The newest one, by what members that rest keep and by the last one. Only one of the lineage in force takes
// the place of that: what is left of a lineage that was given up is none. Nothing: there is none yet.
[[nodiscard]] std::optional<WholeCheckpoint> newest_whole(
    std::optional<WholeCheckpoint> last, const std::map<NodeId, std::vector<KeptParts>>& kept,
    std::uint64_t lineage, std::uint64_t parts);

}  // namespace gossamer::cluster
