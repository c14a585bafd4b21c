// SPDX-License-Identifier: Apache-2.0
//
// ClaimWatch: whether samples are claimed as docs/protocols/scenario.md says. It sees each change of the
// store, and each answer of a coordinator to a claim. It keeps books of its own, and knows nothing of
// ClaimLedger. Thread rule: the simulation's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/ids.h"
#include "cluster/membership/claim_ledger.h"
#include "host/api/store.h"
#include "simulation/watch/durable.h"

namespace gossamer::simulation {

class ClaimWatch {
 public:
  // `batch`: samples of a step. `durable` outlives the watch, and has taken up each change before the watch
  // sees it.
  ClaimWatch(std::uint64_t batch, const Durable& durable) : batch_(batch), durable_(durable) {}

  // The store has applied the change. Returns what is wrong with it.
  [[nodiscard]] std::optional<std::string> applied(const host::Change& change);
  // A coordinator answers a claim of `to`. Returns what is wrong with it.
  [[nodiscard]] std::optional<std::string> answered(Incarnation to, const membership::ClaimAnswer& answer);

 private:
  using Sample = std::pair<std::uint64_t, std::uint64_t>;  // track and id

  [[nodiscard]] std::optional<std::string> claimed(const cluster::Claim& claim) const;
  // Closes the step with the claims that are in the store.
  [[nodiscard]] std::optional<std::string> committed(cluster::TrackId track, StepNumber step);

  const std::uint64_t batch_;
  const Durable& durable_;
  std::map<std::string, cluster::Claim> rows_;        // in the store, by key
  std::map<std::uint64_t, StepNumber> next_;          // by track: the first step that is not committed
  std::map<Sample, Incarnation> closed_;              // whose samples of committed steps are
  std::set<std::pair<Sample, Incarnation>> granted_;  // as coordinators said
};

}  // namespace gossamer::simulation
