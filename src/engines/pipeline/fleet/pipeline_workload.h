// SPDX-License-Identifier: Apache-2.0
//
// PipelineWorkload: the coordinator's side of a pipeline run. It cuts the model into stages, gives each
// member one, deals microbatches, and says what becomes of a step that was under way
// (docs/protocols/pipeline-step.md, "Layout" and "What becomes of the open step"). The run has no things to
// place: a stage has several holders, and the decision names them.
//
// Thread rule: one owner, that of the coordinator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/control/workload.h"
#include "engines/pipeline/fleet/rest_message.h"

namespace gossamer::pipeline {

class PipelineWorkload final : public cluster::Workload {
 public:
  struct Options {
    std::vector<double> work = {1};            // of each layer, with embedding and head; > 0
    std::optional<std::uint32_t> stages = {};  // nothing: half of the members, at least 1
    std::uint64_t microbatches = 1;            // of a step
    std::uint64_t tokens = 1;                  // likewise
    StepNumber start = {};                     // that the run begins with
    bool exact = false;                        // the run has no codec
    bool skips_bad = false;                    // steps whose numbers are not finite
  };
  // For Coordinator::Options: the run has one, which any member may mark.
  [[nodiscard]] static std::vector<cluster::TrackId> tracks() { return {cluster::TrackId(0)}; }
  explicit PipelineWorkload(Options options) : options_(std::move(options)) {}

  [[nodiscard]] std::vector<placement::Thing> things() const override { return {}; }
  [[nodiscard]] bool readable(const std::string& report) const override;
  [[nodiscard]] std::set<NodeId> contradicting_by(
      std::string_view last, const std::map<NodeId, membership::Frozen>& reports) const override;
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override;

 private:
  [[nodiscard]] PipelineDecision first_layout(const std::vector<NodeId>& nodes) const;
  void deal_to_first_stage(PipelineDecision& decision) const;

  const Options options_;
};

// Cuts layers into `stages` runs of adjacent ones, so that the largest sum of work is least. Requires no more
// stages than layers.
[[nodiscard]] std::vector<DecidedLayout::Stage> cut_layers(const std::vector<double>& work,
                                                           std::uint32_t stages);

}  // namespace gossamer::pipeline
