// SPDX-License-Identifier: Apache-2.0
//
// Makes and reads what `gossamer status` shows: the JSON object that a coordinator answers with. Other
// programs read it too (docs/protocols/status.md). Thread rule: plain functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cluster/control/coordinator.h"

namespace gossamer::node {

// All phases, for metrics; cluster::phase_name() has their words.
inline constexpr std::array kPhases{
    cluster::Coordinator::Phase::kSettled, cluster::Coordinator::Phase::kFreezing,
    cluster::Coordinator::Phase::kShort, cluster::Coordinator::Phase::kWaiting,
    cluster::Coordinator::Phase::kStopping};
[[nodiscard]] const char* state_name(membership::State state);
// How many things each node holds. A node that holds none is missing.
[[nodiscard]] std::map<NodeId, std::size_t> things_of(const cluster::HoldingMap& holdings);

struct StatusFacts {
  std::string run;
  std::string program;
  double time = 0;                       // the coordinator's wall clock, seconds since 1970-01-01 UTC
  std::vector<std::string> alarms = {};  // what people should look after
  std::optional<StepNumber> steps = {};  // of the run, where it has an end
  std::optional<double> steps_per_second = {};
};

// How many nodes each token has let in, by the status of a coordinator; empty where it does not say.
[[nodiscard]] std::map<std::string, std::uint64_t> let_in_by_tokens(const std::string& status);

[[nodiscard]] std::string status_json(const cluster::Coordinator& coordinator, const StatusFacts& facts,
                                      Instant now);
// The facts in a status object; kBadData for any other text. Fields that another version lacks are empty.
[[nodiscard]] Result<StatusFacts> status_facts(const std::string& json);
// The whole object as text for people: a few lines and a table.
[[nodiscard]] Result<std::string> status_text(const std::string& json);

}  // namespace gossamer::node
