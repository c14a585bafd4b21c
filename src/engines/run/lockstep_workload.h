// SPDX-License-Identifier: Apache-2.0
//
// LockstepWorkload: the coordinator's side of a LockstepEngine whose members can form the state of any thing
// at any step. They go on at the highest step that any of them has applied. A report and a decision are that
// step, in decimal digits. A member whose report contradicts those of the others is fenced.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/control/workload.h"

namespace gossamer::engine {

[[nodiscard]] std::string step_text(StepNumber step);
// Nothing for another text.
[[nodiscard]] std::optional<StepNumber> read_step(std::string_view text);

class LockstepWorkload final : public cluster::Workload {
 public:
  struct Options {
    std::uint64_t things = 1;
    std::uint64_t thing_bytes = 1;            // in its holder's memory
    StepNumber start = {};                    // that the run begins with
    std::optional<std::uint64_t> steps = {};  // of the run; nothing: there is no end
  };
  explicit LockstepWorkload(const Options& options) : options_(options) {}

  [[nodiscard]] std::vector<placement::Thing> things() const override;
  [[nodiscard]] std::optional<placement::ThingId> thing_of(cluster::TrackId track) const override {
    return placement::ThingId(track.value);
  }
  [[nodiscard]] bool readable(const std::string& report) const override {
    return read_step(report).has_value();
  }
  [[nodiscard]] std::set<NodeId> contradicting(
      const std::map<NodeId, membership::Frozen>& reports) const override;
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override;

  // For Coordinator::Options: a track for each thing.
  [[nodiscard]] std::vector<cluster::TrackId> tracks() const;

 private:
  const Options options_;
};

}  // namespace gossamer::engine
