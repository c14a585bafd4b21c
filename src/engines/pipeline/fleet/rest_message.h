// SPDX-License-Identifier: Apache-2.0
//
// What a member reports at rest, and what is decided then, as bytes and back
// (docs/protocols/pipeline-step.md, "What becomes of the open step"). What is read may come from a stranger:
// nothing comes back for bytes that no member or coordinator writes.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "engines/pipeline/step/open_step.h"
#include "engines/pipeline/step/step_member.h"

namespace gossamer::pipeline {

[[nodiscard]] std::string write_report(const RestReport& report);
// `installed`: the epoch of the last layout that its member has, which membership says.
[[nodiscard]] std::optional<RestReport> read_report(const std::string& bytes, Epoch installed);

struct PipelineDecision {
  DecidedLayout layout;
  std::map<NodeId, std::uint32_t> dealt;  // microbatches of a step, by member of the first stage
  std::optional<InstalledStep::Apply> apply = {};
  bool operator==(const PipelineDecision&) const = default;
};

[[nodiscard]] std::string write_decision(const PipelineDecision& decision);
[[nodiscard]] std::optional<PipelineDecision> read_decision(const std::string& bytes);
// As one member needs it.
[[nodiscard]] InstalledStep for_member(const PipelineDecision& decision, NodeId node);
// The first microbatch of a member of the first stage: microbatches are dealt in the order of nodes.
[[nodiscard]] std::uint64_t first_microbatch(const PipelineDecision& decision, NodeId node);

}  // namespace gossamer::pipeline
