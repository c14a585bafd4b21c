// SPDX-License-Identifier: Apache-2.0
//
// CheckWorkload: the coordinator's side of a fleet check. Members go on at the highest step that any survivor
// has applied, at least at the committed one. Things that lost their holder get their chains from the closed
// form.
//
// It also judges the reports. It finds a chain that does not follow from its steps, and a thing with two
// holders. It finds members that work together but are more than one step apart. Then the decision tells all
// members, and the run ends.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/control/workload.h"
#include "engines/check/check_config.h"
#include "engines/check/check_numbers.h"

namespace gossamer::check {

class CheckWorkload final : public cluster::Workload {
 public:
  explicit CheckWorkload(const CheckConfig& config) : config_(config), numbers_(config) {}

  [[nodiscard]] std::vector<placement::Thing> things() const override;
  [[nodiscard]] std::optional<placement::ThingId> thing_of(cluster::TrackId track) const override {
    return placement::ThingId(track.value);
  }
  [[nodiscard]] bool readable(const std::string& report) const override;
  [[nodiscard]] std::set<NodeId> contradicting(
      const std::map<NodeId, membership::Frozen>& reports) const override;
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override;

  // For Coordinator::Options: a track for each thing.
  [[nodiscard]] std::vector<cluster::TrackId> tracks() const;

 private:
  const CheckConfig config_;
  const CheckNumbers numbers_;
};

}  // namespace gossamer::check
