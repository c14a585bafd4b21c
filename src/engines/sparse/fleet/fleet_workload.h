// SPDX-License-Identifier: Apache-2.0
//
// FleetWorkload: the coordinator's side of a sparse run. Output shards are the things that it places; columns
// and units follow (layout.h). Members go on at the highest step that any of them has applied. Members that
// are behind catch up, and lost pieces are computed anew (docs/protocols/sparse-step.md). The run ends if a
// piece is lost with all its copies. A member whose report contradicts those of the others is fenced.
//
// Thread rule: one owner, that of the coordinator.
#pragma once

#include <gossamer/sparse_fleet.pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/control/workload.h"
#include "engines/sparse/fleet/step/layout.h"

namespace gossamer::sparse_engine {

class FleetWorkload final : public cluster::Workload {
 public:
  struct Options {
    // Memory that a member needs for each of its shards, with what goes with it.
    std::uint64_t shard_bytes = 1;
    std::size_t copies = 1;  // of each piece, beside the holder's own
    StepNumber start = {};   // the run begins with this step, in a state that every member can make
    std::optional<std::uint64_t> steps = {};  // of the run; nothing: there is no end
  };
  FleetWorkload(FleetShape shape, const Options& options) : shape_(std::move(shape)), options_(options) {}

  [[nodiscard]] std::vector<placement::Thing> things() const override;
  [[nodiscard]] std::optional<placement::ThingId> thing_of(cluster::TrackId track) const override {
    return placement::ThingId(track.value);
  }
  [[nodiscard]] bool readable(const std::string& report) const override;
  [[nodiscard]] std::set<NodeId> contradicting(
      const std::map<NodeId, membership::Frozen>& reports) const override;
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override;

  // For Coordinator::Options: a track for each shard.
  [[nodiscard]] std::vector<cluster::TrackId> tracks() const;

 private:
  [[nodiscard]] bool possible(const sparse_fleet::Report& report, const membership::Frozen& said) const;
  [[nodiscard]] Layout layout_of(const cluster::Rest& rest, StepNumber base) const;
  [[nodiscard]] bool recoverable(const Layout& layout) const;

  const FleetShape shape_;
  const Options options_;
};

}  // namespace gossamer::sparse_engine
