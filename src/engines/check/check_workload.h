// SPDX-License-Identifier: Apache-2.0
//
// CheckWorkload: the coordinator's side of a fleet check. Members go on at the highest step that any survivor
// has applied, at least at the committed one; the chains of things that lost their holder come from their
// closed form.
//
// It also judges the reports: a chain that is not what so many steps make of it, members that work together
// and are more than one step apart, a thing that two hold. Then the decision tells all members, and the run
// ends.
//
// Thread rule: one owner, that of the coordinator.
#pragma once

#include <string>
#include <vector>

#include "cluster/control/workload.h"
#include "engines/check/check_config.h"
#include "engines/check/check_numbers.h"

namespace gossamer::engine {

class CheckWorkload final : public cluster::Workload {
 public:
  explicit CheckWorkload(const CheckConfig& config) : config_(config), numbers_(config) {}

  [[nodiscard]] std::vector<placement::Thing> things() const override;
  [[nodiscard]] std::optional<placement::ThingId> thing_of(cluster::TrackId track) const override {
    return placement::ThingId(track.value);
  }
  [[nodiscard]] bool readable(const std::string& report) const override;
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override;

  // For Coordinator::Options: a track for each thing.
  [[nodiscard]] std::vector<cluster::TrackId> tracks() const;

 private:
  const CheckConfig config_;
  const CheckNumbers numbers_;
};

}  // namespace gossamer::engine
