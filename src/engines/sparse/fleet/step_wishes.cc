// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step_wishes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace gossamer::sparse_engine {
namespace {

Error no_cause(std::string what) {
  return {.kind = ErrorKind::kBadData,
          .where = "a step",
          .what = std::move(what),
          .expected = "a member asks for a checkpoint when it is due, and for the end before it leaves",
          .fix = "look whether all nodes run the same version"};
}

}  // namespace

void StepWishes::restart(std::size_t rank) {
  self_ = rank;
  members_.clear();
  end_.reset();
}

std::optional<StepWishes::Broken> StepWishes::asked(std::span<const StepWish> wishes,
                                                    const Applied& applied) {
  members_.resize(wishes.size());
  std::optional<Broken> broken;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    Member& member = members_[rank];
    if (wishes[rank] == StepWish::kHalt) {
      member.ends = true;
      if (!end_) since_ = applied.now;
      if (!end_) end_ = applied.next;
    }
    if (wishes[rank] != StepWish::kCheckpoint || rank == self_ || applied.step < member.asks_until) continue;
    member.asks_until = applied.next;
    // Two questions may come together, as this member may have been held up for long. A third one cannot: its
    // sender had to wait for this member's part of the step of the second.
    const auto earlier = std::exchange(member.before, std::exchange(member.last, applied.now));
    const bool often = earlier && 2 * (applied.now - *earlier).ns < applied.every.ns;
    if (applied.every.ns == 0 || often) broken = {rank, no_cause("a member asks for too many checkpoints")};
  }
  return broken;
}

std::optional<StepWishes::Broken> StepWishes::given(StepNumber step, std::span<const Slices> got) const {
  if (!end_ || step < *end_) return std::nullopt;
  for (std::size_t rank = 0; rank < std::min(got.size(), members_.size()); ++rank) {
    if (rank != self_ && members_[rank].ends && total_bytes(got[rank]) > 0)
      return Broken{rank, no_cause("a member takes a step after it asked for the end")};
  }
  return std::nullopt;
}

std::optional<StepWishes::Broken> StepWishes::staying(bool led, Instant now) {
  if (!led) since_ = now;
  if (now < since_ + kStays) return std::nullopt;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (rank != self_ && members_[rank].ends)
      return Broken{rank, no_cause("a member stays after it asked for the end")};
  }
  return std::nullopt;
}

}  // namespace gossamer::sparse_engine
